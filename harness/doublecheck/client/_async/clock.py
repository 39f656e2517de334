"""A double's clock."""

from __future__ import annotations

import datetime as dt
from types import TracebackType

from doublecheck.client._async.connection import AsyncConnection
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
        return await self._time(admin.clock(self._connection.target))

    async def advance(
        self,
        by: dt.timedelta | None = None,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> dt.datetime:
        """Advance the platform's clock, wait for expired sessions to end, and return the time."""
        step = admin.duration(by, seconds=seconds, minutes=minutes, hours=hours, days=days)
        return await self._time(admin.advance(self._connection.target, step))

    async def freeze(self) -> AsyncFrozenClock:
        """Stop the platform's clock until ``unfreeze()``, a reset, or the end of a with block.

        Meanwhile only ``advance()`` moves it: ``async with await clock.freeze():``.
        """
        await self._time(admin.freeze(self._connection.target, True))
        return AsyncFrozenClock(self)

    async def unfreeze(self) -> dt.datetime:
        """Restart the platform's clock from its frozen time, and return the time."""
        return await self._time(admin.freeze(self._connection.target, False))

    async def _time(self, call: Call[ClockTime]) -> dt.datetime:
        self._seen = await self._connection.call(call)
        return self._seen.now

    def __repr__(self) -> str:
        return f"<AsyncPlatformClock {self._seen or self._connection.target.url}>"


class AsyncFrozenClock:
    """A stopped clock of a double. It runs again at the end of a with block."""

    def __init__(self, clock: AsyncPlatformClock) -> None:
        self._clock = clock

    async def __aenter__(self) -> AsyncPlatformClock:
        return self._clock

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._clock.unfreeze()

    def __repr__(self) -> str:
        return repr(self._clock)
