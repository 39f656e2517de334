# Made by `python -m tests.unasync` from _async/connection.py: change that file, not this one.
"""A connection to a platform, with which all its clients send."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Callable
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import httpx
from httpx_sse import EventSource, ServerSentEvent

from doublecheck.client import transport
from doublecheck.target.target import Target
from doublecheck.wire import application
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.request_log import Exchanges

T = TypeVar("T")

TIMEOUT_S = 60.0


class Connection:
    """An HTTP client for a target, and what it has sent and received."""

    def __init__(
        self, target: Target, *, timeout_s: float = TIMEOUT_S, keep_connections: bool = True
    ) -> None:
        self.target = target
        self.exchanges = Exchanges()
        self.options = transport.options(target, timeout_s)
        if not keep_connections:
            self.options["limits"] = transport.NONE_KEPT
        self.http = httpx.Client(**self.options)

    def call(self, call: Call[T]) -> T:
        """Send the request of a call and return what reads its answer."""
        return call.read(self.send(call.request))

    def send(self, request: Request) -> httpx.Response:
        """Send a request and return the answer as it came."""
        transport.refuse_closed(self.http, self.target.url)
        with (
            transport.translated(request.url),
            self.exchanges.recording(request) as recording,
        ):
            return recording.answered(self.http.request(**transport.arguments(request)))

    @contextmanager
    def streaming(self, request: Request) -> Iterator[httpx.Response]:
        """Send a request; the context has the answer, yet to be read."""
        transport.refuse_closed(self.http, self.target.url)
        with (
            transport.translated(request.url),
            self.exchanges.recording(request) as recording,
        ):
            with self.http.stream(**transport.arguments(request)) as response:
                yield recording.streamed(response)


@contextmanager
def events(
    response: httpx.Response, refuse: Callable[[httpx.Response], None]
) -> Iterator[Generator[ServerSentEvent, None]]:
    """Give the events of an answer as they arrive; ``refuse`` raises what another answer says."""
    if not response.is_success or not application.streams(response):
        response.read()
        refuse(response)
    source: Any = EventSource(response).iter_sse()
    with closing(source) as arriving:
        try:
            yield arriving
        finally:
            # First the connection: otherwise the generators below the events would close it when
            # they are collected, and a loop that does not hear of them, nest_asyncio's say, waits
            # for nothing then.
            response.close()
