"""The processes of a session: how they end, and those that start on demand.

If a caller is cancelled while it starts a process, it must end that process. The cancellation can
come at any moment, even after the process exists and before the caller's task has gone on. So such
an end runs to completion, even if the caller is cancelled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from agentdouble.processes.launcher import StartedProcess
from agentdouble.sandbox.languages import Language

T = TypeVar("T")


class SessionProcess:
    """A kernel, the workbench or the browser of a session; ``died`` is done when it has ended."""

    language: Language

    def __init__(self, process: StartedProcess) -> None:
        self._process = process
        self._end_reason: str | None = None
        self.died = process.exited

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is alive, as far as is known."""
        return not self.died.done()

    async def kill(self, reason: str) -> None:
        """End the process and all that it has started; return when they have ended."""
        if self._end_reason is None:
            self._end_reason = reason
        await run_to_completion(self._end())

    async def _end(self) -> None:
        await self._process.end()

    def how_it_ended(self) -> str:
        """Return why the process was killed, or how it ended."""
        if self._end_reason is not None:
            return self._end_reason
        code = self.died.result() if self.died.done() else None
        if code is None:
            return "its fork server has ended"
        return f"killed by signal {-code}" if code < 0 else f"it exited with code {code}"


Kind = TypeVar("Kind", bound=SessionProcess)


class OnDemandProcess(Generic[Kind]):
    """Keeps one process for a session: starts it when it is needed, and again if it has died.

    ``check`` raises an error if the session may not be used now. ``note`` is called after each
    start.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[Kind]],
        check: Callable[[], None],
        note: Callable[[Kind], None],
    ) -> None:
        self.process: Kind | None = None
        self.turn = asyncio.Lock()  # held while the process starts
        self._start = start
        self._check = check
        self._note = note

    async def living(self) -> Kind:
        """Return the living process; start it if there is none. Raises the errors of its start."""
        async with self.turn:
            self._check()
            if self.process is None or not self.process.alive:
                if self.process is not None:
                    await self.process.kill("it has ended")
                self.process = await self._start()
                self._note(self.process)
            self._check()  # the session may have been paused or ended meanwhile
            assert self.process is not None
            return self.process


async def run_to_completion(work: Awaitable[T]) -> T:
    """Return the result of ``work``; raise a cancellation only after the work has ended.

    Use it for short work that releases something: a process, its sockets, its files.
    """
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()
