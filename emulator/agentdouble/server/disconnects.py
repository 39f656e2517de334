"""Helpers for what a request receives: replay its body, and notice that its client disconnects.

Work for a client ends when the client disconnects.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

WATCH_AFTER_S = 0.02

T = TypeVar("T")


async def cancel_on_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do the work; if the client disconnects, cancel it, so that its code is interrupted.

    ``receive`` belongs to a request whose body has been read. Raises ClientDisconnect if the work
    was cancelled.
    """
    watch = _Watch(receive)
    try:
        return await work
    except asyncio.CancelledError:
        if watch.has_cancelled:
            raise ClientDisconnect from None
        raise
    finally:
        await watch.end()


class _Watch:
    """Cancels the current task when the client disconnects; begins after WATCH_AFTER_S.

    Most work has ended by then, and a task that waits for the client costs a twentieth of a run.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._working = asyncio.current_task()
        self._waiting: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._begin)
        self.has_cancelled = False

    def _begin(self) -> None:
        self._waiting = asyncio.ensure_future(self._wait())

    async def _wait(self) -> None:
        with contextlib.suppress(Exception):  # the connection failed
            await wait_for_disconnect(self._receive)
        if self._working is not None:
            self.has_cancelled = True
            self._working.cancel()

    async def end(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        working, self._working = self._working, None
        if self.has_cancelled and working is not None and sys.version_info >= (3, 11):
            working.uncancel()
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait({self._waiting})


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected; the request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def replay(messages: Sequence[Message], receive: Receive) -> Receive:
    """Return a ``receive`` that replays messages, and then gives those that follow."""
    pending = iter(messages)

    async def receive_replayed() -> Message:
        for message in pending:
            return message
        return await receive()

    return receive_replayed


class EventStreamResponse(StreamingResponse):
    """A stream of events, each sent as soon as it is available.

    The iterator of events is closed when the client has disconnected. Starlette leaves that to the
    garbage collector.
    """

    media_type = "text/event-stream"

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]
            await super().stream_response(send)


class ListenerResponse(EventStreamResponse):
    """A stream that ``written`` makes for a listener; the listener is registered until it ends."""

    def __init__(
        self,
        listening: AbstractContextManager[T],
        written: Callable[[T], AsyncGenerator[str, None]],
    ) -> None:
        self._place = ExitStack()
        super().__init__(written(self._place.enter_context(listening)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)
