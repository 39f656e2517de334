"""The metrics of each runtime, in the formats of Prometheus (HST-04)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

GONE = 499  # the client disconnected before the answer began
_PREFIX = "agentdouble_runtime_"
_REQUESTS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_WAITS_S = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Monitor:
    """The metrics of one double's runtimes; belongs to one event loop."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._runtimes: set[str] = set()

        def counter(name: str, help_: str, *labels: str) -> Counter:
            return Counter(_PREFIX + name, help_, ["runtime", *labels], registry=registry)

        def gauge(name: str, help_: str, *labels: str) -> Gauge:
            return Gauge(_PREFIX + name, help_, ["runtime", *labels], registry=registry)

        def histogram(name: str, help_: str, bounds: Iterable[float], *labels: str) -> Histogram:
            names = ["runtime", *labels]
            return Histogram(_PREFIX + name, help_, names, registry=registry, buckets=[*bounds])

        self.requests = counter("requests", "Requests by the status of their answer.", "status")
        self.errors = counter("errors", "Failed requests by kind.", "kind")
        self.in_flight = gauge("requests_in_flight", "Requests under way.")
        self.durations = histogram(
            "request_duration_seconds", "Duration to the end of the answer.", _REQUESTS_S
        )
        self.first_bytes = histogram(
            "first_byte_seconds", "Time to the beginning of the answer.", _REQUESTS_S
        )
        self.waits = histogram("queue_wait_seconds", "Time waited for an instance.", _WAITS_S)
        self._starts = histogram(
            "start_duration_seconds", "Duration of starts of instances.", _WAITS_S, "cold"
        )
        self._cold_starts = counter("cold_starts", "Starts that a request waited for.")
        self._ends = counter("instances_ended", "Ends of instances, by reason.", "reason")
        self._cpu = counter("cpu_seconds", "Processor time of the processes.")
        self._lines = gauge("log_lines", "Lines that instances have printed.")
        self._instances = gauge("instances", "Instances by state.", "state")
        self._memory = gauge("memory_bytes", "Resident memory of the processes.")
        self._processes = gauge("processes", "Processes of the instances.")

    def show(
        self, runtime: str, *, memory: int, processes: int, lines: int, states: Mapping[str, int]
    ) -> None:
        """Set what a runtime has now: memory (bytes), processes, printed lines, instances."""
        for metric in (self.in_flight, self.durations, self.first_bytes, self.waits, self._cpu):
            metric.labels(runtime)  # zero, even where nothing has happened
        self._memory.labels(runtime).set(memory)
        self._processes.labels(runtime).set(processes)
        self._lines.labels(runtime).set(lines)
        for state in ("starting", "ready", "draining"):
            self._instances.labels(runtime, state).set(states.get(state, 0))

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type, in the format that ``Accept`` requests."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def forget(self, runtime: str) -> None:
        """Forget a deleted runtime; the requests that still run for it are no longer reported."""
        self._runtimes.discard(runtime)
        for metric in vars(self).values():
            if isinstance(metric, (Counter, Gauge, Histogram)):
                metric.remove_by_labels({"runtime": runtime})

    @contextmanager
    def request(self, runtime: str) -> Iterator[Observed]:
        """Observe a request from here to the end of its answer."""
        observed = Observed(self, runtime)
        self._runtimes.add(runtime)
        in_flight = self.in_flight.labels(runtime)
        in_flight.inc()
        try:
            yield observed
        finally:
            in_flight.dec()
            if runtime in self._runtimes:
                self.durations.labels(runtime).observe(observed.passed_s())
                self.requests.labels(runtime, observed.status).inc()
                if observed.failure:
                    self.errors.labels(runtime, observed.failure).inc()

    def started(self, runtime: str, duration_s: float, *, cold: bool) -> None:
        """Note that an instance is ready; ``cold`` if a request waited for it."""
        self._starts.labels(runtime, str(cold).lower()).observe(duration_s)
        if cold:
            self._cold_starts.labels(runtime).inc()

    def ended(self, runtime: str, reason: str) -> None:
        """Note that an instance has ended; ``reason`` is one word."""
        self._ends.labels(runtime, reason).inc()

    def spent(self, runtime: str, duration_s: float) -> None:
        """Add processor time that instances have used."""
        self._cpu.labels(runtime).inc(duration_s)


class Observed:
    """A request that is being passed on; ``error`` is the reason if it failed."""

    def __init__(self, monitor: Monitor, runtime: str) -> None:
        self.error = ""
        self._monitor = monitor
        self._runtime = runtime
        self._has_instance = False
        self._status = GONE
        self._started = time.perf_counter()

    @property
    def status(self) -> int:
        """The status of the answer, set when it begins."""
        return self._status

    @status.setter
    def status(self, status: int) -> None:
        if self._status == GONE:
            self._monitor.first_bytes.labels(self._runtime).observe(self.passed_s())
        self._status = status

    def leased(self) -> None:
        """Note that the request has an instance."""
        if not self._has_instance:  # otherwise the first instance could not be reached
            self._monitor.waits.labels(self._runtime).observe(self.passed_s())
        self._has_instance = True

    def passed_s(self) -> float:
        """Return the seconds since the request came."""
        return time.perf_counter() - self._started

    @property
    def failure(self) -> str:
        """A word for what went wrong, or an empty string."""
        if self.error:
            return self.error
        if self._status == GONE:
            return "gone"
        return "application" if self._status >= 500 else ""
