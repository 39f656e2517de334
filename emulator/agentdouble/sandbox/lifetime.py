"""How long a session lives: its deadline, its pauses, and what defers its end (U-TTL-*).

All rules of the ledger about validity are in this file. It reads no clock: callers pass the time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from agentdouble.core import ledger


class Lifetime:
    """The validity of one session: ``ttl`` long, until ``deadline``."""

    def __init__(self, created_at: dt.datetime, ttl: dt.timedelta) -> None:
        self.ttl = ttl
        self.deadline = created_at + ttl
        self._paused_at: dt.datetime | None = None
        self._at_work = 0  # how many executions and workbench calls run or wait

    @property
    def state(self) -> Literal["active", "paused"]:
        """The state of the session while it lives."""
        return "active" if self._paused_at is None else "paused"

    def renew(self, now: dt.datetime, ttl: dt.timedelta | None = None) -> bool:
        """Note that the session is used; return whether that moves its deadline.

        ``ttl`` is the lifetime that the caller sent, if any (U-TTL-REPEATED, U-TTL-EXTENDS).
        """
        if ttl is not None and ledger.choose("U-TTL-REPEATED") == "renews":
            self.ttl = ttl
        elif ledger.choose("U-TTL-EXTENDS") != "sliding":
            return False
        self.deadline = now + self.ttl
        return True

    def set_ttl(self, now: dt.datetime, ttl: dt.timedelta) -> None:
        """Let the session live for ``ttl`` from now on; raise OverflowError beyond the calendar."""
        self.deadline = now + ttl  # first: if it fails, nothing has changed
        self.ttl = ttl

    def expire(self, now: dt.datetime) -> None:
        """Let the deadline be now."""
        self.deadline = now

    def pause(self, now: dt.datetime) -> None:
        """Pause the session until ``resume``; a second pause changes nothing."""
        if self._paused_at is None:
            self._paused_at = now

    def resume(self, now: dt.datetime) -> None:
        """End a pause; if the ledger says so, move the deadline by its length (U-TTL-PAUSED)."""
        if self._paused_at is not None and ledger.choose("U-TTL-PAUSED") == "stops":
            self.deadline += now - self._paused_at
        self._paused_at = None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count as being at work in this context, which may defer the end (U-TTL-DURING)."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1

    @property
    def at_work(self) -> bool:
        """Whether an execution or a workbench call runs or waits."""
        return self._at_work > 0

    def is_due(self, now: dt.datetime) -> bool:
        """Return whether the deadline has come and nothing defers the end."""
        return self.deadline <= now and not self._is_deferred()

    def _is_deferred(self) -> bool:
        if self._paused_at is not None and ledger.choose("U-TTL-PAUSED") == "stops":
            return True
        return self.at_work and ledger.choose("U-TTL-DURING") == "finishes"


def may_begin_again() -> bool:
    """Return whether a session that has ended may begin again, with a new id (U-TTL-AFTER)."""
    return ledger.choose("U-TTL-AFTER") != "error"
