"""Work for a caller who waits for it: it ends when the caller goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Send

T = TypeVar("T")


async def cancel_on_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do the work; cancel it if the caller goes away, so that its code is interrupted.

    ``receive`` is that of a request whose body has been read. Raises ClientDisconnect when
    the work has been cancelled.
    """
    task = asyncio.ensure_future(work)
    left = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        for one in (task, left):
            one.cancel()
        await asyncio.gather(task, left, return_exceptions=True)


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the caller has disconnected; the request's body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStreamResponse(StreamingResponse):
    """Events that are sent as they come.

    What makes them is closed when the caller has gone; Starlette leaves that to the garbage collector.
    """

    media_type = "text/event-stream"

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]
            await super().stream_response(send)
