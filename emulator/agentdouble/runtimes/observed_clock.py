"""The platform's time as far as what it moved past has been dealt with."""

from __future__ import annotations

import datetime as dt

from agentdouble.clock import Clock


class ObservedClock:
    """A clock whose moves are seen when they are dealt with.

    A client may move the clock as soon as it has its answer, before the loop has taken back the
    instance that gave it: the instance's idle time must begin before the move nevertheless.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._looked_at = clock.offset

    def now(self) -> dt.datetime:
        """Return the platform's time, without moves that are still to be dealt with."""
        return self._clock.wall() + self._offset

    def catch_up(self) -> None:
        """See every move from now on."""
        self._offset = self._clock.offset

    def look(self) -> None:
        """See moves that were there at the last look, too: nobody deals with them."""
        if self._clock.offset == self._looked_at:
            self.catch_up()
        self._looked_at = self._clock.offset
