"""A process beside a session's kernels, started when it is first needed: workbench or browser."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class Process(Protocol):
    """What is started when it is needed, and ended."""

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool: ...

    async def kill(self, reason: str) -> None: ...


Kind = TypeVar("Kind", bound=Process)


class OnDemandProcess(Generic[Kind]):
    """Keeps one process for a session: starts it when it is needed, and again when it has died.

    ``check`` raises where nothing may begin in the session now; ``note`` hears of each start.
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
        """Return the process, started now if there is none that lives; raise as its start does."""
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
