"""The logs of a runtime's instances, also of ended ones: read, searched and followed.

Lines are numbered across the instances of a runtime, so that a reader can resume after the last
line that it has seen. There is no queue for slow readers: a line reports how many lines they
missed.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import heapq
import itertools
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from agentdouble.clock import Clock
from agentdouble.runtimes.logs import Block, InstanceLog, Line, Numbering, Stream

ENDED = 10  # the number of ended instances with a log
_LOGS = 256  # the largest number of logs
_AT_ONCE = 50  # lines that a follower gets at once


@dataclass(frozen=True)
class Wanted:
    """A filter of lines: by the text ``search``, by instance, by stream, and by time."""

    search: str = ""
    instance: str | None = None
    stream: Stream | None = None
    since: dt.datetime | None = None

    def may_be_in(self, block: Block) -> bool:
        """Return whether a block may have such lines."""
        return (
            self.stream in (None, block.stream)
            and (self.since is None or block.at >= self.since)
            and self._bytes in block.data
        )

    def fits(self, line: Line) -> bool:
        """Return whether a line of such a block is wanted."""
        return self.search in line.text

    @property
    def _bytes(self) -> bytes:
        return self.search.encode(errors="replace")


ALL = Wanted()


class RuntimeLogs:
    """Makes the log of each instance; belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._numbering = Numbering(clock.wall, self._wake)
        self._logs: dict[str, InstanceLog] = {}
        self._followers: set[asyncio.Event] = set()
        self._closed = False

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

    def read(self, wanted: Wanted = ALL, tail: int = 1000) -> list[Line]:
        """Return the last of the wanted lines, the oldest first.

        If an instance has printed more than is kept, a line of the double says how much.
        """
        newest_first = heapq.merge(
            *(_backwards(log, wanted) for log in self._chosen(wanted)),
            key=lambda line: -line.number,
        )
        return [*itertools.islice(newest_first, max(tail, 0))][::-1]

    async def follow(
        self, wanted: Wanted = ALL, tail: int = 1000, after: int | None = None
    ) -> AsyncGenerator[Line, None]:
        """Yield the last of the wanted lines, then each new one, until the runtime is closed.

        ``after`` is the number of a line that the reader has seen: then all later lines are
        yielded, whatever ``tail`` says, unless there is no such line. A reader that is too slow
        misses lines, and a line of the double says how many.
        """
        if after is not None and after > self.printed:  # the number is from before a restart
            after = None
        ahead = [] if after is not None else self.read(wanted, tail)
        places = {log.instance: _place(log, after) for log in self._logs.values()}
        news = asyncio.Event()
        self._followers.add(news)
        try:
            while True:
                for count, line in enumerate(ahead, 1):
                    yield line
                    if not count % _AT_ONCE:
                        await asyncio.sleep(0)  # a fast reader must not block the loop
                news.clear()
                ahead = self._later(wanted, places)
                if not ahead:
                    if self._closed:
                        return
                    await news.wait()
        finally:
            self._followers.discard(news)

    def close(self) -> None:
        """End the followers; the lines that are kept can still be read."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for follower in self._followers:
            follower.set()

    def _chosen(self, wanted: Wanted) -> list[InstanceLog]:
        if wanted.instance is None:
            return [*self._logs.values()]
        return [log for log in self._logs.values() if log.instance == wanted.instance]

    def _later(self, wanted: Wanted, places: dict[str, int]) -> list[Line]:
        """Return the wanted lines from ``places`` on, an index for each instance; advance them."""
        chosen = self._chosen(wanted)
        lines = [_from(log, places.get(log.instance, 0), wanted) for log in chosen]
        places.clear()
        places.update((log.instance, log.printed) for log in chosen)
        return [*heapq.merge(*lines, key=lambda line: line.number)]


def _backwards(log: InstanceLog, wanted: Wanted) -> Iterator[Line]:
    last = None
    for block in log.backwards():
        last = block
        if wanted.since is not None and block.at < wanted.since:
            return
        if wanted.may_be_in(block):
            yield from filter(wanted.fits, reversed(block.lines(log.instance)))
    if last is not None and last.index:
        yield _dropped(log, last, last.index)


def _from(log: InstanceLog, place: int, wanted: Wanted) -> list[Line]:
    """Return the wanted lines of a log from an index on."""
    blocks = [*itertools.takewhile(lambda b: b.index + b.count > place, log.backwards())][::-1]
    found: list[Line] = []
    if blocks and blocks[0].index > place:
        found.append(_dropped(log, blocks[0], blocks[0].index - place))
    for block in filter(wanted.may_be_in, blocks):
        lines = block.lines(log.instance)[max(place - block.index, 0) :]
        found += filter(wanted.fits, lines)
    return found


def _place(log: InstanceLog, after: int | None) -> int:
    """Return the index of the first line after the line with number ``after``.

    Only the greatest possible number of lines is known for those that are no longer kept.
    """
    if after is None:
        return log.printed
    place = log.printed
    for block in log.backwards():
        if block.number + block.count <= after + 1:
            return place
        place = block.index + max(after + 1 - block.number, 0)
        oldest = block.number
    if place == log.dropped:
        place -= min(place, max(oldest - after - 1, 0)) if log.printed else 0
    return place


def _dropped(log: InstanceLog, before: Block, count: int) -> Line:
    text = f"… {count:,} line{'' if count == 1 else 's'} dropped"
    return Line(before.number - 1, before.at, log.instance, "double", text)
