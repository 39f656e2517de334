"""The clock of a double."""

from __future__ import annotations

import datetime as dt
from typing import Any

from agentdouble.core import durations
from doublecheck.client._async.connection import AsyncConnection
from doublecheck.client.arguments import require
from doublecheck.errors import ArgumentError
from doublecheck.values.double import ClockTime
from doublecheck.wire import admin
from doublecheck.wire.calls import Call


class AsyncPlatformClock:
    """A double's clock. On a live platform every method raises NotADoubleError."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._seen: ClockTime | None = None

    async def now(self) -> dt.datetime:
        """Return the platform's time, in UTC."""
        return (await self.read()).now

    async def read(self) -> ClockTime:
        """Return the platform's time, with how far it was moved and whether it is stopped."""
        return await self._call("A readable clock", "GET", timeout_s=5)

    async def advance(
        self,
        by: dt.timedelta | str | None = None,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> dt.datetime:
        """Advance the platform's clock, wait for expired sessions to end, and return the time.

        ``by`` is a timedelta or a text: ``advance("29m58s")``. Raises ArgumentError.
        """
        step = _duration(by, seconds=seconds, minutes=minutes, hours=hours, days=days)
        return (await self._call("A movable clock", "POST", {"advance_s": step})).now

    async def freeze(self) -> AsyncFrozenClock:
        """Stop the platform's clock until ``unfreeze()``, a reset, or the end of a with block.

        Meanwhile only ``advance()`` moves it: ``async with await clock.freeze():``.
        """
        await self._call("A stoppable clock", "POST", {"frozen": True})
        return AsyncFrozenClock(self)

    async def unfreeze(self) -> dt.datetime:
        """Restart the platform's clock from its frozen time, and return the time."""
        return (await self._call("A stoppable clock", "POST", {"frozen": False})).now

    async def _call(
        self, feature: str, method: str, document: Any = None, timeout_s: float | None = None
    ) -> ClockTime:
        target = self._connection.target
        request = admin.request(target, feature, method, "/clock", document, timeout_s)
        self._seen = await self._connection.call(Call(request, admin.read_clock))
        return self._seen

    def __repr__(self) -> str:
        return f"<AsyncPlatformClock {self._seen or self._connection.target.url}>"


class AsyncFrozenClock:
    """A stopped clock of a double. It runs again at the end of a with block."""

    def __init__(self, clock: AsyncPlatformClock) -> None:
        self._clock = clock

    async def __aenter__(self) -> AsyncPlatformClock:
        return self._clock

    async def __aexit__(self, *_: object) -> None:
        await self._clock.unfreeze()

    def __repr__(self) -> str:
        return repr(self._clock)


def _duration(by: dt.timedelta | str | None, **units: float) -> float:
    """Return the sum of a duration's arguments in seconds. Raise ArgumentError."""
    if by is not None:
        taken = "a duration such as '30m', a timedelta, or units such as minutes=30"
        require(by, (str, dt.timedelta), "advance", taken)
    for name, number in units.items():
        require(number, (int, float), "advance", f"{name} as a number")
    try:
        total = durations.total(by, **units)
    except (OverflowError, ValueError) as error:  # infinity, or not a number
        raise ArgumentError(f"The clock cannot be advanced: {str(error).rstrip('.')}.") from None
    if total < dt.timedelta(0):
        raise ArgumentError(
            f"The clock cannot move back ({total.total_seconds():g} seconds). platform.reset() "
            "sets it to the time of this machine."
        )
    return total.total_seconds()
