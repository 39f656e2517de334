"""One connection to a server behind the double."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
from collections.abc import Callable
from typing import Any, cast

import httptools

from agentdouble.errors import AnswerLostError

RawHeaders = list[tuple[bytes, bytes]]

LARGEST_HEAD = 64 * 1024  # bytes
_FULL, _ROOM = 256 * 1024, 64 * 1024  # bytes of a body that wait for the reader
_PIECE = 64 * 1024  # bytes


class UpstreamAnswer:
    """A server's answer: status, headers with names in lower case, and a body to read."""

    def __init__(self, connection: UpstreamConnection) -> None:
        self._connection = connection
        self.status = 0
        self.headers: RawHeaders = []
        self.done = False  # nothing is left to be read

    def header(self, name: bytes) -> str | None:
        """Return the value of a header, or None."""
        return next((value.decode("latin-1") for n, value in self.headers if n == name), None)

    async def wait_for_head(self) -> None:
        """Return when status and headers have arrived; raise AnswerLostError."""
        await self._connection.headed()

    async def read(self) -> bytes:
        """Return the received part of the body, ``b""`` at its end; raise AnswerLostError."""
        return await self._connection.read()

    def close(self) -> None:
        """Release the connection; it is closed unless the answer is done."""
        if not self.done:
            self._connection.abort()


class UpstreamConnection(asyncio.Protocol):
    """A connection; it calls ``free`` with itself when it can take another request."""

    def __init__(
        self, free: Callable[[UpstreamConnection], None], lost: Callable[[UpstreamConnection], None]
    ):
        self._free = free
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._answer: UpstreamAnswer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._unsent: list[bytes] = []
        self._room: asyncio.Future[None] | None = None  # a future while there is no room
        self._begin()

    def _begin(self) -> None:
        self._head_size = 0
        self._headed = self._complete = self._until_end = self._reusable = False
        self._bodiless = self._sending = False
        self._failure: AnswerLostError | None = None
        self._chunks: list[bytes] = []
        self._waiting_bytes = 0

    @property
    def closing(self) -> bool:
        """Whether the connection cannot be used any more."""
        return self._transport is None or self._transport.is_closing()

    @property
    def quiet(self) -> bool:
        """Whether nothing is unread: neither data nor the end of the connection."""
        if self._transport is None:
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    async def ask(self, request: bytes) -> UpstreamAnswer:
        """Send a request and return its answer when the head is there; raise AnswerLostError."""
        answer = self.begin(request)
        await answer.wait_for_head()
        return answer

    def begin(
        self, request: bytes, *, bodiless: bool = False, more: bool = False
    ) -> UpstreamAnswer:
        """Send a request, or with ``more`` only its start; return its coming answer.

        ``bodiless`` answers end with their head, as those of HEAD do.
        """
        self._begin()
        if self.closing:  # it was lost after it was made; report that once
            self._failure = AnswerLostError("the connection was closed", unreached=True)
        self._bodiless, self._sending = bodiless, more
        self._parser = httptools.HttpResponseParser(self)
        answer = self._answer = UpstreamAnswer(self)
        self._unsent.append(request)
        if more:
            # so that it is sent together with data that follows at once
            self._loop.call_soon(self._flush)
        else:
            self._flush()
        return answer

    async def send(self, data: bytes, *, more: bool) -> None:
        """Send more of a request; return when there is room again or the connection is closed."""
        self._unsent.append(data)
        self._sending = more
        self._flush()
        if self._room is not None:
            await self._room

    async def headed(self) -> None:
        """Return when the head of the answer has arrived; raise AnswerLostError."""
        try:
            while not self._headed:
                await self._something()
        except BaseException:
            self.abort()
            raise

    async def read(self) -> bytes:
        """Return the part of the body that has arrived since the last call; ``b""`` at its end."""
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
        """Return when data has arrived; raise AnswerLostError if none will."""
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

    def _flush(self) -> None:
        data = b"".join(self._unsent)
        self._unsent.clear()
        if data and not self.closing:  # if it is closing, the next read reports why
            assert self._transport is not None
            self._transport.write(data)

    def _finish(self) -> None:
        """Free or close the connection after the answer has been read to its end."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        answer.done = True
        if self._reusable and not self._sending and not self.closing:
            self._free(self)
        else:
            self.abort()

    def _take_the_rest(self) -> None:
        """Read the data that came before the break, because a write may see the break first.

        This happens if a server answers and closes before it has read the whole request.
        """
        transport = self._transport
        if transport is None or transport.get_extra_info("ssl_object") is not None:
            return
        descriptor = transport.get_extra_info("socket").fileno()
        with contextlib.suppress(OSError):  # there is no more data, or only the error
            while self._answer is not None and not self._complete and self._failure is None:
                data = os.read(descriptor, _PIECE)
                if not data:
                    return
                self.data_received(data)

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or AnswerLostError(reason)
        self.abort()
        self._wake()

    # asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._complete:  # no request is pending
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
        if error is not None:
            self._take_the_rest()
        if self._transport is not None:
            self._transport.close()  # otherwise Python 3.10 considers it open over TLS
            self._transport = None
        if self._headed and self._until_end and error is None:
            self._complete = True
        self._failure = self._failure or AnswerLostError(
            f"the connection was closed ({error})" if error else "the connection was closed"
        )
        self.resume_writing()
        self._lost(self)
        self._wake()

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    # the parser's calls

    def on_message_begin(self) -> None:
        if self._complete:  # a second answer to the same request
            self._fail("it answers what it was not asked")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is not None and not self._headed:  # after the head, they are trailers
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
        bodiless = self._bodiless or status in (204, 304)
        self._complete = self._bodiless  # the parser does not know, and waits for a body
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
