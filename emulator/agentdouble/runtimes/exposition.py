"""The metrics of runtimes in the formats that Prometheus reads."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from agentdouble.runtimes.monitoring import Distribution, Figures
from agentdouble.runtimes.runtime import Runtime
from agentdouble.runtimes.usage import Used

Distributions = dict[tuple[str, ...], Distribution]  # by the values of labels

_PREFIX = "agentdouble_runtime_"
_DISTRIBUTIONS = (
    ("request_duration_seconds", "Duration of requests, to the end of the answer.", "durations"),
    ("first_byte_seconds", "Time from a request to the beginning of its answer.", "first_bytes"),
    ("queue_wait_seconds", "Time that requests waited for an instance.", "waits"),
)
_COUNTERS = (
    ("requests", "Requests by the status of their answer.", "status", "requests"),
    ("errors", "Requests that went wrong: where, or how.", "kind", "errors"),
    ("instances_ended", "Ends of instances, by reason.", "reason", "ends"),
)


def render(
    runtimes: Iterable[Runtime],
    figures: Mapping[str, Figures],
    used: Mapping[str, Used],
    accept: str = "",
) -> tuple[bytes, str]:
    """Return the metrics and their content type, in the format that ``Accept`` requests."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([*_metrics([*runtimes], figures, used)]))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collected:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _metrics(
    runtimes: list[Runtime], figures: Mapping[str, Figures], used: Mapping[str, Used]
) -> Iterator[Metric]:
    of = {runtime.name: figures.get(runtime.name) or Figures() for runtime in runtimes}
    for name, help_, label, attribute in _COUNTERS:
        counts = {runtime: getattr(found, attribute) for runtime, found in of.items()}
        yield _counter(name, help_, label, counts)
    for metric, help_, attribute in _DISTRIBUTIONS:
        found: Distributions = {(name,): getattr(one, attribute) for name, one in of.items()}
        yield _histogram(metric, help_, ["runtime"], found)
    yield _starts(of)
    cold = {name: sum(found.starts[True].counts) for name, found in of.items()}
    yield _plain("cold_starts", "Starts that a request waited for.", cold)
    in_flight = {name: found.in_flight for name, found in of.items()}
    yield _gauge("requests_in_flight", "Requests under way.", in_flight)
    yield _instances(runtimes)
    yield from _uses(runtimes, used)
    cpu = {name: found.cpu_s for name, found in of.items()}
    yield _plain("cpu_seconds", "Processor time of the processes.", cpu)
    lines = {runtime.name: runtime.logs.printed for runtime in runtimes}
    yield _plain("log_lines", "Lines that instances have printed.", lines)


def _starts(of: Mapping[str, Figures]) -> Metric:
    starts: Distributions = {
        (name, str(cold).lower()): found
        for name, figures in of.items()
        for cold, found in figures.starts.items()
    }
    help_ = "Duration of starts of instances; a request waited for the cold ones."
    return _histogram("start_duration_seconds", help_, ["runtime", "cold"], starts)


def _instances(runtimes: list[Runtime]) -> Metric:
    family = GaugeMetricFamily(
        f"{_PREFIX}instances", "Instances by state.", labels=["runtime", "state"]
    )
    for runtime in runtimes:
        states = Counter(instance.state for instance in runtime.begun)
        for state in ("starting", "ready", "draining"):
            family.add_metric([runtime.name, state], states[state])
    return family


def _uses(runtimes: list[Runtime], used: Mapping[str, Used]) -> Iterator[Metric]:
    of = {
        runtime.name: [used[one.name] for one in runtime.begun if one.name in used]
        for runtime in runtimes
    }
    memory = {name: sum(one.memory for one in found) for name, found in of.items()}
    yield _gauge("memory_bytes", "Resident memory of the processes.", memory)
    processes = {name: sum(one.processes for one in found) for name, found in of.items()}
    yield _gauge("processes", "Processes of the instances.", processes)


def _counter(name: str, help_: str, label: str, of: Mapping[str, Counter[str]]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, help_, labels=["runtime", label])
    for runtime, counts in of.items():
        for value, count in sorted(counts.items()):
            family.add_metric([runtime, value], count)
    return family


def _plain(name: str, help_: str, of: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, help_, labels=["runtime"])
    for runtime, count in of.items():
        family.add_metric([runtime], count)
    return family


def _gauge(name: str, help_: str, of: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, help_, labels=["runtime"])
    for runtime, value in of.items():
        family.add_metric([runtime], value)
    return family


def _histogram(name: str, help_: str, labels: list[str], of: Distributions) -> Metric:
    family = HistogramMetricFamily(_PREFIX + name, help_, labels=labels)
    for values, found in of.items():
        bounds = (*map(str, found.bounds), "+Inf")
        counts = itertools.accumulate(found.counts)
        family.add_metric([*values], [*zip(bounds, counts, strict=True)], found.sum)
    return family
