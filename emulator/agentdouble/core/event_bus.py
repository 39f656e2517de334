"""The bus of events: what happens in a double, published where it happens.

``publish`` notes what happened to a subject and how to show it. Every 50 ms each subject that has
changed becomes one event for each listener. A listener that reads too slowly loses events and gets
``resync``. Without listeners nothing is noted, so guard each call of ``publish`` with
``if events.watched``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agentdouble.errors import TooManyListenersError

Show = Callable[[], Mapping[str, Any]]

LISTENERS = 32
KEPT = 4096  # events of a listener that wait to be read
KEPT_BYTES = 8 * 1024 * 1024
COALESCED_S = 0.05
HEARTBEAT_S = 15.0


@dataclass(frozen=True)
class BusEvent:
    """An event as it is sent: its name, and its data as JSON."""

    name: str
    data: str


@dataclass
class _News:
    """What happened to a subject since its last event; repeated happenings count once, last."""

    show: Show
    happened: dict[str, None] = field(default_factory=dict)

    def add(self, happened: str, show: Show) -> None:
        self.happened.pop(happened, None)
        self.happened[happened] = None
        self.show = show


class EventBus:
    """The events of one double. ``publish`` may be called from any thread, the rest on its loop."""

    def __init__(self) -> None:
        self.watched = False  # whether somebody listens
        self._lock = threading.Lock()
        self._news: dict[tuple[str, str], _News] = {}
        self._listeners: set[BusListener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
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
    def listen(self) -> Iterator[BusListener]:
        """Listen from now on; raise TooManyListenersError above ``LISTENERS``."""
        if len(self._listeners) >= LISTENERS:
            raise TooManyListenersError(LISTENERS, "what happens in the double")
        self._loop = asyncio.get_running_loop()
        if self._listeners:
            self._send()  # this listener gets no earlier events
        else:
            self._forget()  # drop what another thread published too late
        listener = BusListener()
        self._listeners.add(listener)
        self.watched = not self._closed
        if self._closed:
            listener.close()
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self.watched = False
                self._forget()

    def close(self) -> None:
        """End all streams, because the double stops; send pending events first."""
        self._send()
        self._closed, self.watched = True, False
        for listener in self._listeners:
            listener.close()

    def _forget(self) -> None:
        with self._lock:
            self._news.clear()

    def _send(self) -> None:
        with self._lock:
            news, self._news = self._news, {}
        for (name, _), subject in news.items():
            data = json.dumps({"happened": list(subject.happened), **subject.show()})
            for listener in self._listeners:
                listener.put(BusEvent(name, data))


class BusListener:
    """The events that one client has not read yet."""

    def __init__(self) -> None:
        self._events = deque([BusEvent("listening", "{}")])
        self._bytes = len("{}")
        self._arrived = asyncio.Event()
        self._closed = False

    async def events(self) -> AsyncGenerator[BusEvent | None, None]:
        """Yield the events, each soon after it happened, until the double stops.

        None stands for 15 seconds without an event.
        """
        while True:
            self._arrived.clear()
            while self._events:
                event = self._events.popleft()
                self._bytes -= len(event.data)
                yield event
                await asyncio.sleep(0)  # let other tasks run, even if the client reads quickly
            if self._closed:
                return
            try:
                await asyncio.wait_for(self._arrived.wait(), HEARTBEAT_S)
            except asyncio.TimeoutError:
                yield None

    def put(self, event: BusEvent) -> None:
        """Add an event; if too many wait, drop them all, and say so with ``resync``."""
        self._events.append(event)
        self._bytes += len(event.data)
        if len(self._events) > KEPT or self._bytes > KEPT_BYTES:
            self._events = deque([BusEvent("resync", "{}")])
            self._bytes = len("{}")
        self._arrived.set()

    def close(self) -> None:
        """End ``events`` after the events there are now."""
        self._closed = True
        self._arrived.set()
