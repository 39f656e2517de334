"""The processes of a session that start when they are needed: its workbench and its browser.

If a caller is cancelled while it starts a process, it must end that process. The cancellation can
come at any moment, even after the process exists and before the caller's task has gone on. So such
an end runs to completion, even if the caller is cancelled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Process(Protocol):
    """A process that is started when it is needed."""

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool: ...

    async def kill(self, reason: str) -> None: ...


Kind = TypeVar("Kind", bound=Process)


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
                await self._renew()
            self._check()
            assert self.process is not None
            return self.process

    async def _renew(self) -> None:
        if self.process is not None:
            await self.process.kill("it has ended")
        self.process = await self._start()
        self._note(self.process)


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
