"""The outputs of sessions' code while it runs, for listeners at ``/_emulator/outputs``.

The platform's answer still comes at the end, unchanged. A listener receives these events of each
execution through InvokeTool: ``started``; an ``output`` for each message of the kernel that
``outputs.OutputCollector`` keeps for the answer; and ``finished``. An output that comes later,
which is in no answer, is the event ``late``. A command's output is published like a kernel's
streams. Callers recognize their own run by the name that they gave it in a header. A slow listener
misses outputs, and the event ``dropped`` says how many, so it never delays another client.
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

if TYPE_CHECKING:
    from agentdouble.sandbox.instance_key import InstanceKey

Kind = Literal["listening", "started", "output", "dropped", "finished", "late"]
ExecutionEnded = Literal["ok", "error", "timeout", "interrupted"]

KEPT = 16 * 1024 * 1024  # bytes of outputs in a listener's queue: twice the largest output limit
LISTENERS = 100
_OVERHEAD = 256  # bytes that an event takes in addition to its content
_AT_ONCE = 50  # events that a listener receives without a pause

_run: ContextVar[str | None] = ContextVar("agentdouble_run", default=None)


@contextmanager
def named_run(run: str | None) -> Iterator[None]:
    """Publish the executions inside the block under the name that their caller gave them."""
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


@dataclass(frozen=True)
class OutputEvent:
    """An event that a listener receives; ``size`` is the rough size of its data in bytes."""

    kind: Kind
    data: Mapping[str, Any]
    size: int = 0


class Listener:
    """The queue of one listener, of bounded size; belongs to one event loop."""

    def __init__(self) -> None:
        self._events = deque([OutputEvent("listening", {})])
        self._size = 0
        self._dropped = 0
        self._news = asyncio.Event()
        self.closed = False

    def receive(self, event: OutputEvent) -> None:
        """Queue an event; drop an output without room, and close if the queue still overflows."""
        if self.closed:
            return
        if event.kind in ("output", "late") and self._events and self._size + event.size > KEPT:
            self._dropped += 1
            return
        if self._dropped:
            self._add(OutputEvent("dropped", {"run": event.data["run"], "messages": self._dropped}))
            self._dropped = 0
        self._add(event)
        if self._size > 2 * KEPT:
            self.close()

    async def events(self) -> AsyncGenerator[OutputEvent, None]:
        """Yield the events, until the listener is closed."""
        while True:
            for _ in range(min(len(self._events), _AT_ONCE)):
                event = self._events.popleft()
                self._size -= event.size + _OVERHEAD
                yield event
            if self._events:
                await asyncio.sleep(0)  # let other tasks run, even if the client reads quickly
            elif self.closed:
                return
            else:
                self._news.clear()
                await self._news.wait()

    def close(self) -> None:
        """End ``events`` after the events that are in the queue now."""
        self.closed = True
        self._news.set()

    def _add(self, event: OutputEvent) -> None:
        self._events.append(event)
        self._size += event.size + _OVERHEAD
        self._news.set()


class OutputFeed:
    """The listeners of the sessions of one double; belongs to its event loop."""

    def __init__(self) -> None:
        self._listeners: dict[InstanceKey, list[Listener]] = {}
        self._closed = False

    @contextmanager
    def listen(self, key: InstanceKey) -> Iterator[Listener]:
        """Listen to a session, which need not live yet.

        Raises TooManyListenersError if there are ``LISTENERS`` already.
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

    def is_heard(self, key: InstanceKey) -> bool:
        """Return whether somebody listens to a session."""
        return key in self._listeners

    def publisher(self, key: InstanceKey) -> ExecutionPublisher:
        """Return the publisher for an execution that is about to begin."""
        return ExecutionPublisher(self, key, _run.get())

    def publish(self, key: InstanceKey, kind: Kind, data: Mapping[str, Any], size: int) -> None:
        """Send an event to all listeners of a session."""
        for listener in self._listeners.get(key, ()):
            listener.receive(OutputEvent(kind, data, size))

    def close(self) -> None:
        """Close all listeners, because the double stops."""
        self._closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.close()


class ExecutionPublisher:
    """Publishes one execution to listeners while it runs."""

    def __init__(self, feed: OutputFeed, key: InstanceKey, run: str | None) -> None:
        self._feed = feed
        self._key = key
        self._run = run

    @property
    def heard(self) -> bool:
        """Whether somebody listens now."""
        return self._feed.is_heard(self._key)

    def started(self, language: str, execution_count: int | None) -> None:
        """Publish that the code has started."""
        details = {"language": language, "execution_count": execution_count}
        self._publish("started", details)

    def output(self, msg_type: str, content: Mapping[str, Any], size: int) -> None:
        """Publish an output, or a change of earlier outputs, for example ``clear_output``."""
        self._publish("output", {"msg_type": msg_type, "content": content}, size)

    def late(self, msg_type: str, content: Mapping[str, Any], size: int) -> None:
        """Publish an output that came after the end of the code."""
        self._publish("late", {"msg_type": msg_type, "content": content}, size)

    def finished(self, status: ExecutionEnded, *, context_lost: bool) -> None:
        """Publish that the code has ended, and whether the session's state is lost."""
        self._publish("finished", {"status": status, "context_lost": context_lost})

    def _publish(self, kind: Kind, data: Mapping[str, Any], size: int = 0) -> None:
        self._feed.publish(self._key, kind, {"run": self._run, **data}, size)
