"""A double's clock, for tests and notebooks; what is asked stands in ``wire.admin``."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from doublecheck.client.arguments import checked_class
from doublecheck.wire import admin

if TYPE_CHECKING:
    from doublecheck.client.async_platform import AsyncPlatform
    from doublecheck.client.platform import Platform


@checked_class
class PlatformClock:
    """A double's clock; on a live platform every method raises NotADoubleError."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def now(self) -> dt.datetime:
        """Return the platform's time, in UTC."""
        return self._platform._call(admin.now(self._platform.target))

    def advance(
        self, by: dt.timedelta | None = None, *, seconds: float = 0, minutes: float = 0
    ) -> dt.datetime:
        """Move the platform's time forward; return it when what became due is destroyed."""
        return self._platform._call(
            admin.advance(self._platform.target, admin.duration(by, seconds, minutes))
        )


@checked_class
class AsyncPlatformClock:
    """A double's clock for async code; on a live platform it raises NotADoubleError."""

    def __init__(self, platform: AsyncPlatform) -> None:
        self._platform = platform

    async def now(self) -> dt.datetime:
        """Return the platform's time, in UTC."""
        return await self._platform._call(admin.now(self._platform.target))

    async def advance(
        self, by: dt.timedelta | None = None, *, seconds: float = 0, minutes: float = 0
    ) -> dt.datetime:
        """Move the platform's time forward; return it when what became due is destroyed."""
        return await self._platform._call(
            admin.advance(self._platform.target, admin.duration(by, seconds, minutes))
        )
