"""What the code of sessions puts out while it runs, for whoever listens (``/_emulator/outputs``).

The platform's answer comes at the end and stays as it is. A listener receives of each execution
through InvokeTool that it ``started``, each ``output`` that will be in its answer (what
``outputs.OutputCollector`` keeps), as the kernel's message, and that it ``finished``. A command's
output is published as a kernel's streams are. Callers recognize their own run by the name that
they gave it in a header. A listener that does not keep up misses outputs and is told how many
(``dropped``): it holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentdouble.errors import TooManyListenersError
from agentdouble.sandbox.result import without_colours

if TYPE_CHECKING:
    from agentdouble.sandbox.session import InstanceKey

Kind = Literal["listening", "started", "output", "dropped", "finished"]
ExecutionEnded = Literal["ok", "error", "timeout", "interrupted"]

KEPT = 16 * 1024 * 1024  # bytes, of what a listener has not taken: twice the largest output limit
LISTENERS = 100
_OVERHEAD = 256  # bytes; what an event costs besides what it says
_AT_ONCE = 50  # events that a listener is given at once

_run: ContextVar[str | None] = ContextVar("agentdouble_run", default=None)


@contextmanager
def named_run(run: str | None) -> Iterator[None]:
    """Publish the executions inside under the name that their caller gave them."""
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


@dataclass(frozen=True)
class Event:
    """Something that a listener receives; ``size`` is about what it takes, in bytes."""

    kind: Kind
    data: Mapping[str, Any]
    size: int = 0


class Listener:
    """A queue of bounded size for one listener; belongs to one event loop."""

    def __init__(self) -> None:
        self._events = deque([Event("listening", {})])
        self._size = 0
        self._dropped = 0
        self._news = asyncio.Event()
        self.closed = False

    def receive(self, event: Event) -> None:
        """Queue an event; drop an output without room, and close if nothing is taken at all."""
        if self.closed:
            return
        if event.kind == "output" and self._has_no_room_for(event):
            self._dropped += 1
            return
        if self._dropped:
            self._add(Event("dropped", {"run": event.data["run"], "messages": self._dropped}))
            self._dropped = 0
        self._add(event)
        if self._size > 2 * KEPT:
            self.close()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events, until the listener is closed."""
        while True:
            for _ in range(min(len(self._events), _AT_ONCE)):
                event = self._events.popleft()
                self._size -= event.size + _OVERHEAD
                yield event
            if self._events:
                await asyncio.sleep(0)  # whoever takes them quickly holds up nobody
            elif self.closed:
                return
            else:
                self._news.clear()
                await self._news.wait()

    def close(self) -> None:
        """End ``events`` when those in the queue are taken."""
        self.closed = True
        self._news.set()

    def _has_no_room_for(self, event: Event) -> bool:
        return bool(self._events) and self._size + event.size > KEPT

    def _add(self, event: Event) -> None:
        self._events.append(event)
        self._size += event.size + _OVERHEAD
        self._news.set()


class OutputFeed:
    """The listeners to the sessions of one double; belongs to its event loop."""

    def __init__(self, *, plain_tracebacks: bool) -> None:
        self._plain = plain_tracebacks
        self._listeners: dict[InstanceKey, list[Listener]] = {}
        self._closed = False

    @contextmanager
    def listen(self, key: InstanceKey) -> Iterator[Listener]:
        """Listen to a session, which need not have an instance yet.

        Raises TooManyListenersError if there are as many as may be.
        """
        if sum(map(len, self._listeners.values())) >= LISTENERS:
            raise TooManyListenersError(LISTENERS)
        listener = Listener()
        if self._closed:
            listener.close()
        self._listeners.setdefault(key, []).append(listener)
        try:
            yield listener
        finally:
            self._listeners[key].remove(listener)
            if not self._listeners[key]:
                del self._listeners[key]

    def publisher(self, key: InstanceKey) -> ExecutionPublisher:
        """Return the publisher of an execution that is about to begin."""
        return ExecutionPublisher(self, key, _run.get(), plain=self._plain)

    def has_listeners(self, key: InstanceKey) -> bool:
        """Whether somebody listens to a session now."""
        return key in self._listeners

    def publish(self, key: InstanceKey, kind: Kind, data: Mapping[str, Any], size: int) -> None:
        """Send an event to all listeners of a session."""
        for listener in self._listeners.get(key, ()):
            listener.receive(Event(kind, data, size))

    def close(self) -> None:
        """Close all listeners, because the double stops."""
        self._closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.close()


class ExecutionPublisher:
    """Publishes one execution to listeners while it runs."""

    def __init__(self, feed: OutputFeed, key: InstanceKey, run: str | None, *, plain: bool) -> None:
        self._feed = feed
        self._key = key
        self._run = run
        self._plain = plain

    @property
    def has_listeners(self) -> bool:
        """Whether somebody listens now."""
        return self._feed.has_listeners(self._key)

    def started(self, language: str, execution_count: int | None) -> None:
        """Publish that the code runs."""
        said = {"language": language, "execution_count": execution_count}
        self._publish("started", said)

    def output(self, msg_type: str, content: Mapping[str, Any], size: int) -> None:
        """Publish an output, or a change of those before: ``clear_output``, say."""
        if msg_type == "error" and self._plain:
            content = {**content, "traceback": without_colours(content["traceback"])}
        self._publish("output", {"msg_type": msg_type, "content": content}, size)

    def finished(self, status: ExecutionEnded, *, context_lost: bool) -> None:
        """Publish that the code has ended, and whether the session's state is lost."""
        self._publish("finished", {"status": status, "context_lost": context_lost})

    def _publish(self, kind: Kind, data: Mapping[str, Any], size: int = 0) -> None:
        self._feed.publish(self._key, kind, {"run": self._run, **data}, size)
