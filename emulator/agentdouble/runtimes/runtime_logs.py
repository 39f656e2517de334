"""The logs of a runtime's instances, also of ended ones; lines are numbered across instances."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from agentdouble.clock import Clock
from agentdouble.runtimes.logs import InstanceLog, Line, Numbering

ENDED = 10  # the number of ended instances with a log
_LOGS = 256  # the largest number of logs


class RuntimeLogs:
    """Makes the log of each instance; belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._numbering = Numbering(clock.wall)
        self._logs: dict[str, InstanceLog] = {}

    def open(self, instance: str) -> InstanceLog:
        """Return the log of a new instance; forget the oldest logs of ended instances."""
        ended = [log.instance for log in self._logs.values() if log.ended]
        surplus = max(len(ended) - ENDED + 1, 0)
        for name in ended[:surplus] or [*self._logs][: len(self._logs) - _LOGS + 1]:
            del self._logs[name]
        self._logs[instance] = log = InstanceLog(instance, self._numbering)
        return log

    def of(self, instance: str) -> InstanceLog | None:
        """Return the log of an instance, if it is kept."""
        return self._logs.get(instance)

    @property
    def printed(self) -> int:
        """How many lines have been printed so far."""
        return self._numbering.next - 1

    @property
    def instances(self) -> tuple[str, ...]:
        """The instances whose logs are kept, the oldest first."""
        return tuple(self._logs)

    def read(self, instance: str | None = None, tail: int = 1000) -> list[Line]:
        """Return the last lines of one instance or of all, the oldest first.

        If an instance has printed more than is kept, a line of the double says how much.
        """
        chosen = [log for log in self._logs.values() if instance in (None, log.instance)]
        newest_first = heapq.merge(*map(_backwards, chosen), key=lambda line: -line.number)
        return [*itertools.islice(newest_first, max(tail, 0))][::-1]


def _backwards(log: InstanceLog) -> Iterator[Line]:
    first = None
    for first in log.backwards():
        yield from reversed(first.lines(log.instance))
    if first is not None and first.index:
        text = f"… {first.index:,} line{'' if first.index == 1 else 's'} dropped"
        yield Line(first.number - 1, first.at, log.instance, "double", text)
