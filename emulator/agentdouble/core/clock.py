"""The only source of time for the rules of the platform.

``Clock.now()`` is the wall clock plus an offset that ``advance()`` moves; ``freeze()`` stops it.
Every rule of the platform reads it, such as a session's 30 minutes. ``Clock.wall()`` is the wall
clock itself, which neither of them changes; the age of a signature is measured with it. Both follow
freezegun and time-machine, because both call ``datetime`` each time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from types import TracebackType

from agentdouble.core import durations

Watcher = Callable[[], None]
Follower = Callable[[str], None]

_MARGIN = dt.timedelta(days=366)  # the clock also moves by itself, and deadlines lie beyond it


class Clock:
    """A wall clock that can be moved forward without waiting, and stopped."""

    def __init__(self) -> None:
        self._offset = dt.timedelta(0)
        self._stopped_at: dt.datetime | None = None
        self._stood_still = dt.timedelta(0)
        self._watchers: list[Watcher] = []
        self._followers: list[Follower] = []

    @property
    def offset(self) -> dt.timedelta:
        """How far the platform's time was moved."""
        return self._offset

    @property
    def frozen(self) -> bool:
        """Whether only ``advance()`` moves the platform's time."""
        return self._stopped_at is not None

    def wall(self) -> dt.datetime:
        """Return the wall clock, in UTC."""
        return dt.datetime.now(dt.timezone.utc)

    def now(self) -> dt.datetime:
        """Return the platform's time, in UTC."""
        return self.unmoved() + self._offset

    def unmoved(self) -> dt.datetime:
        """Return the platform's time without its moves, but with its stops."""
        return (self._stopped_at or self.wall()) - self._stood_still

    def freeze(self) -> FrozenClock:
        """Stop the platform's time until ``unfreeze()``, ``reset()`` or the end of a with block.

        ``advance()`` goes on moving it.
        """
        if self._stopped_at is None:
            self._stopped_at = self.wall()
            self._tell("frozen")
        return FrozenClock(self)

    def unfreeze(self) -> None:
        """Let the platform's time run again."""
        if self._stopped_at is not None:
            self._stood_still += self.wall() - self._stopped_at
            self._stopped_at = None
            self._tell("unfrozen")

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
        self._tell("moved")

    def advance(self, by: dt.timedelta | str | None = None, **units: float) -> None:
        """Move the platform's time; return when everything that became due is handled.

        ``by`` may be a text, ``advance("29m58s")``; ``units`` are those of a timedelta:
        ``advance(hours=1)``. Raises ValueError as ``move()`` does.
        """
        self.move(durations.total(by, **units))
        for watcher in list(self._watchers):
            watcher()

    def reset(self) -> None:
        """Set the platform's time back to the wall clock, which runs."""
        self._offset = self._stood_still = dt.timedelta(0)
        self._stopped_at = None
        self._tell("reset")

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` after each ``advance()``; return a function that ends this."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def follow(self, follower: Follower) -> None:
        """Call ``follower`` with "moved", "frozen", "unfrozen" or "reset" after each change."""
        self._followers.append(follower)

    def _tell(self, event: str) -> None:
        for follower in self._followers:
            follower(event)

    def __repr__(self) -> str:
        return f"<Clock {self.now():%Y-%m-%d %H:%M:%S} UTC{', frozen' * self.frozen}>"


class FrozenClock:
    """A frozen clock; at the end of a with block it runs again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __enter__(self) -> Clock:
        return self._clock

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._clock.unfreeze()

    def __repr__(self) -> str:
        return repr(self._clock)
