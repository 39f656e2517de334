"""What is counted and measured of each runtime, in Prometheus' format (HST-04)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_PREFIX = "agentdouble_runtime_"


class Observed:
    """A request that is being passed on; ``status`` is set when its answer begins."""

    status: int = 499  # whoever asked went away before


class Monitor:
    """The figures of one double's runtimes."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        of = ["runtime"]
        self._requests = Counter(
            f"{_PREFIX}requests", "Requests by status.", [*of, "status"], registry=registry
        )
        self._durations = Histogram(
            f"{_PREFIX}request_duration_seconds", "Duration of requests.", of, registry=registry
        )
        self._in_flight = Gauge(
            f"{_PREFIX}requests_in_flight", "Requests at this moment.", of, registry=registry
        )
        self._starts = Histogram(
            f"{_PREFIX}start_duration_seconds",
            "Duration of starts of instances; cold ones had a request waiting.",
            [*of, "cold"],
            registry=registry,
        )
        self._instances = Gauge(
            f"{_PREFIX}instances", "Instances that are ready.", of, registry=registry
        )
        self._ends = Counter(
            f"{_PREFIX}instances_ended", "Ends of instances.", [*of, "reason"], registry=registry
        )

    @contextmanager
    def request(self, runtime: str) -> Iterator[Observed]:
        """Observe a request from here to the end of its answer."""
        observed, begun = Observed(), time.perf_counter()
        in_flight = self._in_flight.labels(runtime)
        in_flight.inc()
        try:
            yield observed
        finally:
            in_flight.dec()
            self._durations.labels(runtime).observe(time.perf_counter() - begun)
            self._requests.labels(runtime, str(observed.status)).inc()

    def started(self, runtime: str, duration_s: float, *, cold: bool) -> None:
        """Note that an instance is ready."""
        self._starts.labels(runtime, str(cold).lower()).observe(duration_s)

    def instances(self, runtime: str, count: int) -> None:
        """Note how many instances are ready."""
        self._instances.labels(runtime).set(count)

    def ended(self, runtime: str, reason: str) -> None:
        """Note that an instance has ended: idle, replaced, crashed, unstarted or asked."""
        self._ends.labels(runtime, reason).inc()

    def render(self) -> bytes:
        """Return the figures in Prometheus' text format."""
        return generate_latest(self._registry)
