"""The connection to a platform, shared by all its clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

import httpx

from agentdouble.core.event_stream import ServerSentEvent
from doublecheck.client import transport
from doublecheck.target.target import Target
from doublecheck.wire import event_stream
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.request_log import Again, Exchanges

T = TypeVar("T")

TIMEOUT_S = 60.0


class AsyncConnection:
    """An HTTP client for a target that records its exchanges.

    ``again`` decides whether a request is sent again, from its exchange and how often it was sent.
    """

    again: Again | None = None

    def __init__(
        self,
        target: Target,
        *,
        timeout_s: float = TIMEOUT_S,
        longest_answer_s: float | None = None,
        keep_connections: bool = True,
    ) -> None:
        self.target = target
        self.exchanges = Exchanges(target)
        self.options = transport.options(target, timeout_s, longest_answer_s)
        if not keep_connections:
            self.options["limits"] = transport.NONE_KEPT
        self.http = transport.client_async(**self.options)

    async def call(self, call: Call[T]) -> T:
        """Send the request of a call and return its parsed answer."""
        return call.read(await self.send(call.request))

    async def send(self, request: Request) -> httpx.Response:
        """Send a request and return the raw response."""
        transport.refuse_closed(self.http, self.target.url)
        number = 0
        while True:
            number += 1
            with (
                transport.translated(request.url),
                transport.interruptible(),  # async only
                self.exchanges.recording(request) as recording,
            ):
                try:
                    response = await self.http.request(**transport.arguments(request))
                    recording.answered(response)
                except httpx.HTTPError as error:
                    recording.failed(error)
                    if not recording.repeats(self.again, number):
                        raise
                else:
                    if not recording.repeats(self.again, number):
                        return response

    @asynccontextmanager
    async def streaming(self, request: Request) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the response before its body is read."""
        transport.refuse_closed(self.http, self.target.url)
        with (
            transport.translated(request.url),
            transport.interruptible(),  # async only
            self.exchanges.recording(request) as recording,
        ):
            async with self.http.stream(**transport.arguments(request)) as response:
                yield recording.streamed(response)


@asynccontextmanager
async def events(
    response: httpx.Response, refuse: Callable[[httpx.Response], None]
) -> AsyncIterator[AsyncGenerator[ServerSentEvent, None]]:
    """Yield the events of an answer as they arrive.

    ``refuse`` raises if it is not an event stream.
    """
    if not response.is_success or not event_stream.is_stream(response):
        await response.aread()
        refuse(response)
    async with aclosing(event_stream.aread_events(response)) as arriving:
        try:
            yield arriving
        finally:
            # Close the connection first. Otherwise the garbage collector closes it through the
            # event generators, and a loop without hooks for async generators (nest_asyncio's) does
            # not wait for that.
            await response.aclose()
