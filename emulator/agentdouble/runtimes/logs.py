"""The output of instances, kept in memory: the newest lines, numbered across the instances of a runtime."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agentdouble.core.clock import Clock

Stream = Literal["stdout", "stderr", "double"]  # "double": the double's messages

LINES = 10_000
SIZE = 1024 * 1024  # bytes that are kept of an instance
LONGEST_LINE = 16 * 1024  # bytes; a longer line is split
ENDED = 10  # the number of ended instances with a log


@dataclass(frozen=True)
class Line:
    """A line without its line break; ``number`` is its place among all lines of the runtime."""

    number: int
    at: dt.datetime
    instance: str
    stream: Stream
    text: str


class InstanceLog:
    """The newest lines of one instance; belongs to one event loop."""

    def __init__(
        self, instance: str, next_number: Callable[[], int], wall: Callable[[], dt.datetime]
    ) -> None:
        self.instance = instance
        self.lines: deque[Line] = deque(maxlen=LINES)
        self._next_number = next_number
        self._wall = wall
        self._size = 0
        self._begun: dict[Stream, bytes] = {}
        self._open: set[Stream] = {"stdout", "stderr"}

    @property
    def ended(self) -> bool:
        """Whether both streams of the instance have ended."""
        return not self._open

    def feed(self, stream: Stream, data: bytes) -> None:
        """Add printed data; ``b""`` marks the end of the stream."""
        *lines, partial = (self._begun.pop(stream, b"") + data).split(b"\n")
        if not data:
            self._open.discard(stream)
            lines += [partial] if partial else []
        elif len(partial) > LONGEST_LINE:
            lines.append(partial)
        elif partial:
            self._begun[stream] = partial
        for line in lines:
            for start in range(0, len(line) or 1, LONGEST_LINE):
                piece = line[start : start + LONGEST_LINE].removesuffix(b"\r")
                self._add(stream, piece.decode(errors="replace"))

    def note(self, text: str) -> None:
        """Add a message of the double about the instance."""
        self._add("double", text)

    def tail(self, count: int) -> list[Line]:
        """Return the last lines, the oldest first."""
        return [*self.lines][-count:] if count > 0 else []

    def text(self, count: int) -> str:
        """Return the last lines, the oldest first, each with its time in UTC."""
        return "".join(f"{shown_time(line.at)} {line.text}\n" for line in self.tail(count))

    def _add(self, stream: Stream, text: str) -> None:
        if len(self.lines) == LINES:
            self._size -= len(self.lines[0].text)
        self.lines.append(Line(self._next_number(), self._wall(), self.instance, stream, text))
        self._size += len(text)
        while self._size > SIZE:
            self._size -= len(self.lines.popleft().text)


class RuntimeLogs:
    """Makes the log of each instance; belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.printed = 0  # lines so far
        self._logs: dict[str, InstanceLog] = {}

    def open(self, instance: str) -> InstanceLog:
        """Return the log of a new instance; forget the oldest logs of ended instances."""
        ended = [log.instance for log in self._logs.values() if log.ended]
        for name in ended[: max(len(ended) - ENDED + 1, 0)]:
            del self._logs[name]
        self._logs[instance] = log = InstanceLog(instance, self._next_number, self._clock.wall)
        return log

    def of(self, instance: str) -> InstanceLog | None:
        """Return the log of an instance, if it is kept."""
        return self._logs.get(instance)

    @property
    def instances(self) -> tuple[str, ...]:
        """The instances whose logs are kept, the oldest first."""
        return tuple(self._logs)

    def read(self, instance: str | None = None, tail: int = 1000) -> list[Line]:
        """Return the last lines of one instance or of all, the oldest first."""
        logs = (log.lines for log in self._logs.values() if instance in (None, log.instance))
        lines = sorted(itertools.chain(*logs), key=lambda line: line.number)
        return lines[-tail:] if tail > 0 else []

    def _next_number(self) -> int:
        self.printed += 1
        return self.printed


def shown_time(at: dt.datetime) -> str:
    """Return a time with milliseconds, in UTC."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
