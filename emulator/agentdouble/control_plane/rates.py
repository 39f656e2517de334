"""The rates above which requests to the control plane are refused (U-LIMITS)."""

from __future__ import annotations

import datetime as dt
from collections import deque

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.core.ledger import Ledger
from agentdouble.errors import ActionError
from agentdouble.settings import Settings

WRITES_OF_TOOLS = frozenset(("CreateTool", "UpdateTool", "DeleteTool"))
_SECOND = dt.timedelta(seconds=1)


class _Rate:
    """At most ``most`` requests within any second, by the times of those that were allowed."""

    def __init__(self, most: int, of: str) -> None:
        self.most = most
        self.of = of
        self.times: deque[dt.datetime] = deque(maxlen=most)

    def is_reached(self, now: dt.datetime) -> bool:
        """Return whether one more request would be above the rate."""
        return len(self.times) == self.most and now - self.times[0] < _SECOND


class Rates:
    """Refuses requests above the rates of the settings, if the ledger says so.

    Time is that of the double's clock: while it is frozen, only ``advance()`` allows more requests.
    """

    def __init__(self, clock: Clock, settings: Settings, in_force: Ledger) -> None:
        self._clock = clock
        self._ledger = in_force
        self._all = _Rate(settings.rate_per_s, "requests")
        self._writes = _Rate(settings.tool_rate_per_s, "writes of tools")
        clock.follow(self._follow)

    def check(self, action: str) -> None:
        """Count a request; raise ActionError if it is above a rate."""
        # Not ``choose()``, because only a refusal relies on the answer: otherwise every request
        # would, and strict tests would fail because of a limit that they never reach.
        if self._ledger.answer("U-LIMITS").name != "rates":
            return
        now = self._clock.now()
        rates = [self._all, self._writes] if action in WRITES_OF_TOOLS else [self._all]
        for rate in rates:
            if rate.is_reached(now):
                ledger.choose("U-LIMITS")
                raise ActionError(
                    "RequestLimitExceeded",
                    f"QPS limit exceeded: {rate.most} {rate.of} a second are allowed. Try again "
                    "in a second.",
                    status=429,
                    retry_after_s=1,
                )
        for rate in rates:
            rate.times.append(now)

    def _follow(self, event: str) -> None:
        if event == "reset":  # the times may be in the future now
            self._all.times.clear()
            self._writes.times.clear()
