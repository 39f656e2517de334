"""The processes of an instance: their output goes to its log, and they end as one tree."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import Protocol

from agentdouble.runtimes.streams import Streams


class Tree(Protocol):
    """A process with all the processes that it starts."""

    pid: int

    @property
    def exited(self) -> asyncio.Future[int | None]:
        """Done when the whole tree has ended; the first process's exit code, or None if unknown."""

    def send_signal(self, number: int) -> None:
        """Send a signal to the first process, or SIGKILL to all."""


class Process:
    """The process tree of a started instance; ``exited`` is done when it has ended.

    ``hidden`` are paths that its command names, but that its confinement does not show.
    """

    def __init__(self, tree: Tree, streams: Streams, hidden: Sequence[str] = ()) -> None:
        self._tree = tree
        self._streams = streams
        self.hidden = hidden
        self.pid = tree.pid
        self.exited: asyncio.Future[int | None] = tree.exited
        self._finished = asyncio.ensure_future(self._finish())

    @property
    def manner(self) -> str:
        """How the first process ended; only after it has ended."""
        code = self.exited.result()
        if code is None:
            return "was killed with the double's fork server"
        return f"ended with {f'code {code}' if code >= 0 else f'signal {-code}'}"

    async def end(self, patience_s: float) -> None:
        """Ask the process to end, then kill it; return when nothing of it is left."""
        self._tree.send_signal(signal.SIGTERM)
        await asyncio.wait({self.exited}, timeout=patience_s)
        self._tree.send_signal(signal.SIGKILL)
        await self.finished()

    async def finished(self) -> None:
        """Return when it has ended and all its output is in the log."""
        await asyncio.shield(self._finished)

    async def _finish(self) -> None:
        await asyncio.wait({self.exited})
        await self._streams.finish()
