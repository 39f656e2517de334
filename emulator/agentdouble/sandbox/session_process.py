"""A process of a session besides its kernels, its workbench or its browser, and how starts end.

Whoever starts something ends it if nobody can take it over. A caller may leave at any moment, even
when the process exists and its own task has not yet gone on: so such an end is run to completion,
whatever is cancelled meanwhile.
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
    """Keeps one process for a session: starts it when it is needed, and again when it has died.

    ``check`` raises if nothing may begin in the session now; ``note`` is called after each start.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[Kind]],
        check: Callable[[], None],
        note: Callable[[Kind], None],
    ) -> None:
        self.process: Kind | None = None
        self.turn = asyncio.Lock()  # held while it starts
        self._start = start
        self._check = check
        self._note = note

    async def living(self) -> Kind:
        """Return the living process, started now if there is none; raise what its start raises."""
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
    """Return the result of some work; raise a cancellation only when the work has ended.

    Use it for work that takes a moment and releases something: a process, its sockets, its files.
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
