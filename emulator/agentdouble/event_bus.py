"""What happens in a double, for those who listen: published where it happens, kept for a while.

``publish`` notes what happened to a subject and how to show it. Every 50 ms the subjects with news
are shown, once each, and become events in a ring of bounded size. A listener is a place in that
ring: one that is too slow, or comes back too late, finds its place gone and is told so.

While nobody listens nothing is noted, so each call of ``publish`` stands behind ``if
events.watched``. For a minute after the last listener has gone the ring goes on, so that a listener
whose connection broke can resume.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agentdouble.errors import TooManyListenersError

Show = Callable[[], Mapping[str, Any]]

LISTENERS = 32
KEPT = 4096  # events
KEPT_BYTES = 8 * 1024 * 1024
COALESCED_S = 0.05
LINGER_S = 60.0
HEARTBEAT_S = 15.0
_AT_ONCE = 50  # events that a listener receives without a pause


@dataclass(frozen=True)
class Event:
    """An event as it is sent: its id, its name, and its data as JSON."""

    id: str
    name: str
    data: str


@dataclass
class _News:
    """What happened to a subject since its last event, in the order of the last time of each."""

    show: Show
    happened: dict[str, None] = field(default_factory=dict)

    def add(self, happened: str, show: Show) -> None:
        self.happened.pop(happened, None)
        self.happened[happened] = None
        self.show = show


class EventBus:
    """The events of one double. ``publish`` may be called from any thread, the rest on its loop."""

    def __init__(self) -> None:
        self.watched = False  # whether anything has to be published
        self._name = secrets.token_hex(4)  # ids of another double, or of one before, do not fit
        self._lock = threading.Lock()
        self._news: dict[tuple[str, str], _News] = {}
        self._ring: deque[Event] = deque()
        self._bytes = 0
        self._last = 0  # the number of the last event
        self._listeners: set[Listener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.TimerHandle | None = None
        self._closed = False

    def publish(self, name: str, subject: str, happened: str, show: Show) -> None:
        """Note what happened to a subject; ``show`` returns its data, in the loop and soon."""
        with self._lock:
            is_first = not self._news
            key = name, subject
            news = self._news.pop(key, None) or _News(show)
            news.add(happened, show)
            self._news[key] = news
        if is_first and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                self._loop.call_soon_threadsafe(self._loop.call_later, COALESCED_S, self._send)

    @contextmanager
    def listen(self, last_id: str | None = None) -> Iterator[Listener]:
        """Listen from now on, or from after the event with the id ``last_id``.

        Raises TooManyListenersError if there are ``LISTENERS`` already.
        """
        if len(self._listeners) >= LISTENERS:
            raise TooManyListenersError(LISTENERS, "what happens in the double")
        self._watch()
        listener = Listener(self, self._number(last_id), resumes=last_id is not None)
        self._listeners.add(listener)
        if self._closed:
            listener.close()
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and not self._closed:
                loop = asyncio.get_running_loop()
                self._stopping = loop.call_later(LINGER_S, self._stop_watching)

    def close(self) -> None:
        """End all streams after what has happened until now, because the double stops."""
        if self.watched:
            self._send()
        self._closed = True
        self._stop_watching()
        for listener in self._listeners:
            listener.close()

    def id(self, number: int) -> str:
        """Return the id of the event with this number."""
        return f"{self._name}-{number}"

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._last

    def after(self, number: int) -> list[Event] | None:
        """Return some of the events after that number, or None if it is not known any more."""
        missing = self._last - number
        if not 0 <= missing <= len(self._ring):
            return None
        start = len(self._ring) - missing
        return [self._ring[place] for place in range(start, min(start + _AT_ONCE, len(self._ring)))]

    def _number(self, last_id: str | None) -> int:
        """Return the number of an id, one that never was for an id that is not of this double."""
        if last_id is None:
            return self._last
        name, _, number = last_id.partition("-")
        fits = name == self._name and number.isascii() and number.isdecimal() and len(number) < 18
        return int(number) if fits else -1

    def _watch(self) -> None:
        if self._stopping is not None:
            self._stopping.cancel()
            self._stopping = None
        if self.watched or self._closed:
            return
        self._loop = asyncio.get_running_loop()
        self._forget()  # something that another thread published too late
        self._last += 1  # stands for what was not noted, so that nobody resumes before it
        self.watched = True

    def _stop_watching(self) -> None:
        self.watched = False
        with self._lock:
            self._news.clear()
        if not self._closed:  # otherwise listeners still read
            self._forget()

    def _forget(self) -> None:
        self._ring.clear()
        self._bytes = 0

    def _send(self) -> None:
        with self._lock:
            news, self._news = self._news, {}
        for (name, _), one in news.items():
            data = json.dumps({"happened": list(one.happened), **one.show()})
            self._last += 1
            self._keep(Event(self.id(self._last), name, data))
        for listener in self._listeners:
            listener.wake()

    def _keep(self, event: Event) -> None:
        self._ring.append(event)
        self._bytes += len(event.data)
        while len(self._ring) > KEPT or (self._bytes > KEPT_BYTES and len(self._ring) > 1):
            self._bytes -= len(self._ring.popleft().data)


class Listener:
    """A place in the ring of events."""

    def __init__(self, bus: EventBus, number: int, *, resumes: bool) -> None:
        self._bus = bus
        self._number = number
        self._greets = not resumes
        self._news = asyncio.Event()
        self._closed = False

    async def events(self) -> AsyncGenerator[Event | None, None]:
        """Yield the events, each soon after it happened, until the double stops.

        None stands for 15 seconds without an event.
        """
        if self._greets:
            yield Event(self._bus.id(self._number), "listening", "{}")
        while True:
            self._news.clear()
            found = self._bus.after(self._number)
            if found is None:
                self._number = self._bus.last
                yield Event(self._bus.id(self._number), "resync", "{}")
                continue
            for event in found:
                self._number += 1
                yield event
            if found:
                await asyncio.sleep(0)  # let other tasks run, even if the client reads quickly
            elif self._closed:
                return
            elif not await self._has_news():
                yield None

    async def _has_news(self) -> bool:
        try:
            await asyncio.wait_for(self._news.wait(), HEARTBEAT_S)
        except asyncio.TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """Say that there are events."""
        self._news.set()

    def close(self) -> None:
        """End ``events`` after the events there are now."""
        self._closed = True
        self._news.set()
