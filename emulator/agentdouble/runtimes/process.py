"""The processes of an instance: their output goes to its log, and they end as one tree."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Protocol

from agentdouble import threads
from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.logs import InstanceLog, Stream
from agentdouble.runtimes.reaching import Door

_LAST_WORDS_S = 1.0  # a pipe ends with its last writer, and all of them are dead by then


class Tree(Protocol):
    """A process with all the processes that it starts."""

    pid: int

    @property
    def exited(self) -> asyncio.Future[int | None]:
        """Done when the whole tree has ended; the first process's exit code, or None if unknown."""

    def send_signal(self, number: int) -> None:
        """Send a signal to the first process, or SIGKILL to all."""


class Output(asyncio.Protocol):
    """The output of one pipe; ``ended`` is done when nothing more comes."""

    def __init__(self, stream: Stream, log: InstanceLog) -> None:
        self._stream: Stream = stream
        self._log = log
        self._transport: asyncio.BaseTransport | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read(self, descriptor: int) -> None:
        """Begin to read from a pipe; the pipe is closed at the end."""
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(descriptor, "rb", 0)
        self._transport, _ = await loop.connect_read_pipe(lambda: self, pipe)

    def data_received(self, data: bytes) -> None:
        """Add the data to the log."""
        self._log.feed(self._stream, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that nothing more comes."""
        self._log.feed(self._stream, b"")
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()


class Process:
    """The process tree of a started instance; ``exited`` is done when it has ended.

    ``door`` is where its port is reached, if the port is in a network of its own. ``hidden`` are
    paths that its command names, but that its confinement does not show.
    """

    def __init__(
        self,
        tree: Tree,
        outputs: Sequence[Output],
        workspace: Workspace,
        door: Door | None = None,
        hidden: Sequence[str] = (),
    ) -> None:
        self._tree = tree
        self._outputs = outputs
        self._workspace = workspace
        self.door = door
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
        await asyncio.wait([output.ended for output in self._outputs], timeout=_LAST_WORDS_S)
        for output in self._outputs:
            output.close()
        await asyncio.wait([output.ended for output in self._outputs])
        await threads.run_in_thread(self._workspace.remove)
