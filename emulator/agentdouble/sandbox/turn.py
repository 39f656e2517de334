"""The turn of code: one execution at a time, in the order in which they arrive (SBX-02)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

from agentdouble.core import ledger
from agentdouble.errors import SandboxError
from agentdouble.journal.entries import note_step

Occupancy = Literal["busy", "idle"]


def _tell_nobody(_occupancy: Occupancy) -> None:
    """Do nothing."""


class ExecutionTurn:
    """The turn of a session or of one of its kernels; ``name`` is its name in errors.

    ``on_change`` is called with "busy" for each execution that arrives, and with "idle" when the
    last one has left. Belongs to one event loop.
    """

    def __init__(self, name: str, on_change: Callable[[Occupancy], None] = _tell_nobody) -> None:
        self._name = name
        self._on_change = on_change
        self._lock = asyncio.Lock()  # hands over in order of arrival
        self._executions = 0  # that run or wait

    @property
    def busy(self) -> bool:
        """Whether code runs or waits for its turn."""
        return self._executions > 0

    def check_free(self) -> None:
        """Raise SandboxError if code runs and the ledger refuses more (U-EXEC-CONCURRENCY)."""
        if self.busy and ledger.choose("U-EXEC-CONCURRENCY") == "refused":
            raise SandboxError(
                f"The instance of session {self._name!r} is running code.",
                "InvalidResource.Busy",
                409,
            )

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Wait for the turn and hold it; it is busy from now on, even during the wait."""
        self._executions += 1
        self._on_change("busy")
        try:
            with note_step("turn"):
                await self._lock.acquire()
            try:
                yield
            finally:
                self._lock.release()
        finally:
            self._executions -= 1
            if not self._executions:
                self._on_change("idle")

    async def idle(self) -> None:
        """Return when the executions that have arrived are over."""
        async with self.over():
            return

    @asynccontextmanager
    async def over(self) -> AsyncIterator[None]:
        """Wait until the executions that have arrived are over, without being one."""
        async with self._lock:
            yield
