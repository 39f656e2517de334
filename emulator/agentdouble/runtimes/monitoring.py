"""The metrics of each runtime (HST-04).

They are plain numbers, because each request pays for them: all of them cost a request 14 µs. The
six calls of prometheus-client's own objects cost 23 µs, and importing those costs 57 ms at the
start. ``exposition`` converts them to Prometheus' format, and is imported when a client requests
them. The metrics of a runtime are removed with the runtime.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentdouble.runtimes.instance import Instance

GONE = 499  # the client disconnected before the answer began
_STATUSES = range(100, 600)  # all others are counted together

REQUESTS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
WAITS_S = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Distribution:
    """Counts durations by the smallest bound, in seconds, that they do not exceed."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, duration_s: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.bounds, duration_s)] += 1
        self.sum += duration_s


@dataclass
class Figures:
    """The metrics of one runtime."""

    requests: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    durations: Distribution = field(default_factory=lambda: Distribution(REQUESTS_S))
    first_bytes: Distribution = field(default_factory=lambda: Distribution(REQUESTS_S))
    waits: Distribution = field(default_factory=lambda: Distribution(WAITS_S))
    starts: dict[bool, Distribution] = field(
        default_factory=lambda: {cold: Distribution(WAITS_S) for cold in (True, False)}
    )
    ends: Counter[str] = field(default_factory=Counter)
    cpu_s: float = 0.0


class Observed:
    """A request that is being passed on; ``error`` is the reason if it failed."""

    def __init__(self, figures: Figures) -> None:
        self.error = ""
        self.instance = ""
        self.cold = False
        self._figures = figures
        self._status = GONE
        self._begun = time.perf_counter()

    @property
    def status(self) -> int:
        """The status of the answer, set when it begins."""
        return self._status

    @status.setter
    def status(self, status: int) -> None:
        if self._status == GONE:
            self._figures.first_bytes.observe(self.passed_s())
        self._status = status

    def leased(self, instance: Instance) -> None:
        """Note that the request has an instance, and whether it waited for the instance's start."""
        if not self.instance:  # otherwise the first instance could not be reached
            self._figures.waits.observe(self.passed_s())
        self.instance, self.cold = instance.name, instance.ready_s > self._begun

    def passed_s(self) -> float:
        """Return the seconds since the request came."""
        return time.perf_counter() - self._begun

    @property
    def failure(self) -> str:
        """A word for what went wrong, or an empty string."""
        if self.error:
            return self.error
        if self._status == GONE:
            return "gone"
        return "application" if self._status >= 500 else ""


class Monitor:
    """The metrics of one double's runtimes; belongs to one event loop."""

    def __init__(self) -> None:
        self._of: dict[str, Figures] = {}

    def figures(self) -> Mapping[str, Figures]:
        """Return the metrics of each runtime, by name."""
        return self._of

    def forget(self, runtime: str) -> None:
        """Forget a deleted runtime; the requests that still run for it are no longer reported."""
        self._of.pop(runtime, None)

    @contextmanager
    def request(self, runtime: str) -> Iterator[Observed]:
        """Observe a request from here to the end of its answer."""
        figures = self._figures(runtime)
        observed = Observed(figures)
        figures.in_flight += 1
        try:
            yield observed
        finally:
            figures.in_flight -= 1
            figures.durations.observe(observed.passed_s())
            status = observed.status
            figures.requests[str(status) if status in _STATUSES else "other"] += 1
            if observed.failure:
                figures.errors[observed.failure] += 1

    def started(self, runtime: str, duration_s: float, *, cold: bool) -> None:
        """Note that an instance is ready; ``cold`` if a request waited for it."""
        self._figures(runtime).starts[cold].observe(duration_s)

    def ended(self, runtime: str, reason: str) -> None:
        """Note that an instance has ended; ``reason`` is one word."""
        self._figures(runtime).ends[reason] += 1

    def spent(self, runtime: str, duration_s: float) -> None:
        """Add processor time that instances have used."""
        self._figures(runtime).cpu_s += duration_s

    def _figures(self, runtime: str) -> Figures:
        return self._of.setdefault(runtime, Figures())
