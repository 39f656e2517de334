"""The output of instances, kept in memory: the newest lines, numbered across the instances of a runtime."""

from __future__ import annotations

import datetime as dt
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from agentdouble.clock import Clock

Stream = Literal["stdout", "stderr", "double"]  # "double": the double's messages

LINES = 10_000
SIZE = 1024 * 1024  # bytes that are kept of an instance
LONGEST_LINE = 16 * 1024  # bytes; a longer line is split
_PIECE = 64 * 1024  # bytes; no block and no line is much larger
_OVERHEAD = 256  # bytes that a block costs in addition to its data


@dataclass(frozen=True)
class Line:
    """A line without its line break; ``number`` is its place among all lines of the runtime."""

    number: int
    at: dt.datetime
    instance: str
    stream: Stream
    text: str


@dataclass(frozen=True)
class Block:
    """Lines that came at once.

    ``number`` is the first line's number in the runtime, and ``index`` its number in the instance.
    """

    number: int
    index: int
    at: dt.datetime
    stream: Stream
    data: bytes
    count: int

    def lines(self, instance: str) -> list[Line]:
        """Return the lines; bytes that are not UTF-8 become U+FFFD."""
        return [
            Line(self.number + place, self.at, instance, self.stream, _text(line))
            for place, line in enumerate(self.data.split(b"\n"))
        ]


class Numbering:
    """Numbers the lines of a runtime."""

    def __init__(self, wall: Callable[[], dt.datetime]) -> None:
        self.wall = wall
        self.next = 1

    def take(self, count: int) -> int:
        """Reserve ``count`` numbers and return the first."""
        first = self.next
        self.next += count
        return first


class InstanceLog:
    """The newest lines of one instance; belongs to one event loop."""

    def __init__(self, instance: str, numbering: Numbering) -> None:
        self.instance = instance
        self.printed = 0  # lines so far
        self._numbering = numbering
        self._blocks: deque[Block] = deque()
        self._size = 0
        self._begun: dict[Stream, bytes] = {}
        self._open: set[Stream] = {"stdout", "stderr"}

    @property
    def ended(self) -> bool:
        """Whether both streams of the instance have ended."""
        return not self._open

    @property
    def dropped(self) -> int:
        """How many lines are no longer kept."""
        return self._blocks[0].index if self._blocks else self.printed

    def feed(self, stream: Stream, data: bytes) -> None:
        """Add printed data; ``b""`` marks the end of the stream."""
        for start in range(0, len(data), _PIECE):
            self._take(stream, data[start : start + _PIECE])
        if not data:
            self._open.discard(stream)
            self._take(stream, data)

    def note(self, text: str) -> None:
        """Add a message of the double about the instance."""
        self._keep("double", text.encode(errors="replace"))

    def tail(self, count: int) -> list[Line]:
        """Return the last lines, the oldest first."""
        found: list[Line] = []
        for block in self.backwards():
            if len(found) >= count:
                break
            found[:0] = block.lines(self.instance)
        return found[-count:] if count > 0 else []

    def text(self, count: int) -> str:
        """Return the last lines, the oldest first, each with its time in UTC."""
        return "".join(
            f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond // 1000:03d}Z {line.text}\n"
            for line in self.tail(count)
        )

    def backwards(self) -> Iterator[Block]:
        """Return the blocks, the newest first; the log must not grow during the iteration."""
        return reversed(self._blocks)

    def _take(self, stream: Stream, data: bytes) -> None:
        whole, ends, begun = (self._begun.pop(stream, b"") + data).rpartition(b"\n")
        if ends:
            self._keep(stream, whole)
        if begun and not data:
            self._keep(stream, begun)
        elif len(begun) > LONGEST_LINE:
            end = _whole_characters(begun)
            self._keep(stream, begun[:end])
            begun = begun[end:]
        if begun and data:
            self._begun[stream] = begun

    def _keep(self, stream: Stream, data: bytes) -> None:
        count = data.count(b"\n") + 1
        numbering = self._numbering
        block = Block(numbering.take(count), self.printed, numbering.wall(), stream, data, count)
        self._blocks.append(block)
        self.printed += count
        self._size += len(data) + _OVERHEAD
        while len(self._blocks) > 1 and self._too_much():
            self._size -= len(self._blocks.popleft().data) + _OVERHEAD

    def _too_much(self) -> bool:
        return self._size > SIZE or self.printed - self.dropped > LINES


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")


def _whole_characters(data: bytes) -> int:
    """Return where to cut, so that no character of UTF-8 is split."""
    for back in range(1, 4):
        if data[-back] >= 0xC0:
            return len(data) - back
        if data[-back] < 0x80:
            break
    return len(data)


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
