"""The only source of time for a rule of the platform.

``Clock.now()`` is the wall clock plus an offset that ``advance()`` moves; every rule of the
platform (a session's 30 minutes, say) reads it. ``Clock.wall()`` is the wall clock itself,
which ``advance()`` does not move; the age of a signature is measured with it. Both follow
freezegun and time-machine, because both ask ``datetime`` anew at each call.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

Watcher = Callable[[], None]

_MARGIN = dt.timedelta(days=366)  # the clock goes on by itself, and deadlines are ahead of it


class Clock:
    """A wall clock that can be moved forward without waiting."""

    def __init__(self) -> None:
        self._offset = dt.timedelta(0)
        self._watchers: list[Watcher] = []

    @property
    def offset(self) -> dt.timedelta:
        """How far ``now()`` is ahead of ``wall()``."""
        return self._offset

    def wall(self) -> dt.datetime:
        """Return the wall clock, in UTC."""
        return dt.datetime.now(dt.timezone.utc)

    def now(self) -> dt.datetime:
        """Return the platform's time, in UTC."""
        return self.wall() + self._offset

    def move(self, by: dt.timedelta) -> None:
        """Move the platform's time by ``by`` and tell nobody.

        Raises ValueError if ``by`` is negative, because what has expired cannot come back, or
        if it leads beyond the year 9999.
        """
        if by < dt.timedelta(0):
            raise ValueError(f"The clock only moves forward, not by {by}.")
        try:
            self.now() + by + _MARGIN
        except OverflowError:
            raise ValueError(f"The clock ends with the year 9999: {by} is too far.") from None
        self._offset += by

    def advance(self, by: dt.timedelta) -> None:
        """Move the platform's time by ``by``; return when what became due has been dealt with.

        Raises ValueError as ``move()`` does.
        """
        self.move(by)
        for watcher in list(self._watchers):
            watcher()

    def reset(self) -> None:
        """Set the platform's time back to the wall clock."""
        self._offset = dt.timedelta(0)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` after each ``advance()``; return a function that ends this."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)
