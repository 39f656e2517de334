"""One HTTP/1.1 connection to a backend: a request at a time, its answer as it comes.

httpx costs 0.8 ms a request, this 0.1: a service may cost its callers 1 ms in all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import httptools

from agentdouble.errors import BackendLostError

RawHeaders = list[tuple[bytes, bytes]]

LARGEST_HEAD = 64 * 1024  # bytes
_FULL, _ROOM = 256 * 1024, 64 * 1024  # bytes of a body that wait for who reads it


class Answer:
    """A backend's answer: status and headers, names in lower case, and the body to be read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.status = 0
        self.headers: RawHeaders = []
        self.done = False  # nothing is left to be read

    def header(self, name: bytes) -> str | None:
        """Return a header, or None."""
        return next((value.decode("latin-1") for n, value in self.headers if n == name), None)

    async def read(self) -> bytes:
        """Return what has come of the body, ``b""`` at its end; raise BackendLostError."""
        return await self._connection.read()

    def close(self) -> None:
        """Let go of the connection; it is of no more use unless the answer is done."""
        if not self.done:
            self._connection.abort()


class Connection(asyncio.Protocol):
    """A connection; ``free`` is called with it when it can take another request."""

    def __init__(self, free: Callable[[Connection], None], lost: Callable[[Connection], None]):
        self._free = free
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._answer: Answer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._begin()

    def _begin(self) -> None:
        self._head_size = 0
        self._headed = self._complete = self._until_end = self._reusable = False
        self._failure: BackendLostError | None = None
        self._chunks: list[bytes] = []
        self._waiting_bytes = 0

    @property
    def closing(self) -> bool:
        """Whether the connection is of no more use."""
        return self._transport is None or self._transport.is_closing()

    async def ask(self, request: bytes) -> Answer:
        """Send a request and return its answer once the head is there; raise BackendLostError."""
        self._begin()
        self._parser = httptools.HttpResponseParser(self)
        answer = self._answer = Answer(self)
        assert self._transport is not None
        self._transport.write(request)
        try:
            while not self._headed:
                await self._something()
        except BaseException:
            self.abort()
            raise
        return answer

    async def read(self) -> bytes:
        """Return what has come of the body since; ``b""`` at its end."""
        while not self._chunks and not self._complete:
            await self._something()
        read = b"".join(self._chunks)
        self._chunks.clear()
        self._waiting_bytes = 0
        if self._complete:
            self._finish()
        elif self._transport is not None:
            self._transport.resume_reading()
        return read

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _something(self) -> None:
        """Return when something has come; raise BackendLostError if nothing will."""
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self) -> None:
        """The answer has been read to its end."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        answer.done = True
        if self._reusable and not self.closing:
            self._free(self)
        else:
            self.abort()

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or BackendLostError(reason)
        self.abort()
        self._wake()

    # asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._complete:  # nobody has asked for anything
            self.abort()
            return
        if not self._headed:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"it does not speak HTTP: {error}")
            return
        if not self._headed and self._head_size > LARGEST_HEAD:
            self._fail("the head of its answer has no end")
            return
        if self._waiting_bytes > _FULL and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._transport.close()  # over TLS Python 3.10 holds it for open otherwise
            self._transport = None
        if self._headed and self._until_end and error is None:
            self._complete = True
        self._failure = self._failure or BackendLostError(
            f"the connection was closed ({error})" if error else "the connection was closed"
        )
        self._lost(self)
        self._wake()

    # the parser's calls

    def on_message_begin(self) -> None:
        if self._complete:  # it says more than it was asked: nobody can know for whom
            self._fail("it answers what it was not asked")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is not None and not self._headed:  # afterwards they are trailers
            self._answer.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._answer is None or self._complete:
            return
        status = self._parser.get_status_code()
        if status < 200:  # the answer itself is still to come
            self._answer.headers.clear()
            return
        self._answer.status = status
        self._headed = True
        named = {name for name, _ in self._answer.headers}
        bodiless = status in (204, 304)
        self._until_end = not bodiless and not named & {b"content-length", b"transfer-encoding"}

    def on_body(self, chunk: bytes) -> None:
        if self._complete:
            return
        self._chunks.append(chunk)
        self._waiting_bytes += len(chunk)

    def on_message_complete(self) -> None:
        if self._headed and not self._complete:
            self._complete = True
            self._reusable = self._parser.should_keep_alive()
