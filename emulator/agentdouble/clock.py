"""The only source of time for the rules of the platform.

``Clock.now()`` is the wall clock plus an offset that ``advance()`` moves. Every rule of the
platform reads it, such as a session's 30 minutes. ``Clock.wall()`` is the wall clock itself, which
``advance()`` does not move; the age of a signature is measured with it. Both follow freezegun and
time-machine, because both call ``datetime`` each time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

Watcher = Callable[[], None]

_MARGIN = dt.timedelta(days=366)  # the clock also moves by itself, and deadlines lie after it


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
        """Move the platform's time by ``by`` without calling the watchers.

        Raises ValueError if ``by`` is negative, because something that has expired cannot be valid
        again, or if the time would be after the year 9999.
        """
        if by < dt.timedelta(0):
            raise ValueError(f"The clock only moves forward, not by {by}.")
        try:
            self.now() + by + _MARGIN
        except OverflowError:
            raise ValueError(f"The clock ends with the year 9999: {by} is too far.") from None
        self._offset += by

    def advance(self, by: dt.timedelta) -> None:
        """Move the platform's time by ``by``; return when everything that became due is handled.

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
