"""The protocols of a connection: HTTP/1.1 and WebSockets, with bounds on heads and connections."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import struct
from typing import Any, Literal, cast

import httptools
from starlette.types import Receive, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

PEER = "agentdouble.peer"  # in the scope: the address at the other end, whatever a proxy says
TRANSPORT = "agentdouble.transport"  # in the scope: the connection, for code that must end it

LARGEST_HEAD = 256 * 1024  # bytes
JOINED_AT_MOST = 16 * 1024  # bytes
SLOW_S = 30  # the longest that a head may take, and that a body may be silent
_INVALID = "Invalid HTTP request received."

_http_log = logging.getLogger("uvicorn.error")

LARGEST_WEBSOCKET_MESSAGE = 64 * 1024 * 1024  # bytes

_websocket_log = logging.getLogger("agentdouble.websocket")


def is_closed(scope: Scope) -> bool:
    """Return whether the connection of a request is closed, as far as this side knows."""
    transport: asyncio.Transport | None = scope.get(TRANSPORT)
    return transport is not None and transport.is_closing()


async def hang_up(scope: Scope, receive: Receive, *, reset: bool = False) -> None:
    """Close the connection of a request after the data was sent; return when it is closed.

    With ``reset`` the other end gets a connection reset. Data that the application sends after
    that is dropped. If there is no socket, because the application is called in this process, it
    raises ConnectionResetError.
    """
    transport: asyncio.Transport | None = scope.get(TRANSPORT)
    if transport is None:
        raise ConnectionResetError("The connection was closed by an injected fault.")
    await asyncio.sleep(0)  # so that a head that waits for its body is sent
    if reset:
        no_farewell = struct.pack("ii", 1, 0)
        # through a copy, because uvloop's socket does not have all methods
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as copy:
            copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_farewell)
    encrypted = transport.get_extra_info("ssl_object") is not None
    if reset or (encrypted and not transport.get_write_buffer_size()):
        transport.abort()  # over TLS a close would wait for the client's closing alert
    else:
        transport.close()
    while (await receive())["type"] != "http.disconnect":
        pass


class OneProtocol(HttpToolsProtocol):
    """A connection that continues with HTTP if a request asks for an unsupported protocol.

    It ends if a client does not send what it has begun, because each connection takes a
    descriptor of the process.
    """

    _head = 0  # bytes received since the last head or body ended
    _part: Literal["head", "body"] | None = None  # of a request, where it is incomplete
    _began_s = _heard_s = 0.0  # by the clock of the loop
    _pace: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; one that sends nothing at all ends like an idle one."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._watch_no_more()

    def data_received(self, data: bytes) -> None:
        """Read bytes; if a request asks for an unsupported protocol, continue with HTTP.

        httptools leaves the body of such a request unread. For example, Java's client asks for
        HTTP/2 with its first POST.
        """
        self._unset_keepalive_if_required()
        self._head += len(data)
        self._heard_s = self.loop.time()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self._watch_no_more()
                self.handle_websocket_upgrade()
                return
            rest = self._head_without_upgrade() + data[upgrade.args[0] :]
            self.parser = httptools.HttpRequestParser(self)
            OneProtocol.data_received(self, rest)
        except httptools.HttpParserError:
            _http_log.warning(_INVALID)
            self.send_400_response(_INVALID)
        else:
            if self._head > LARGEST_HEAD:
                self._refuse(431, b"The head of the request is too large.\n")
        if self._part is None or self.transport.is_closing():
            self._watch_no_more()
        elif self._pace is None:
            self._pace = self.loop.call_later(SLOW_S, self._check_pace)

    def _watch_no_more(self) -> None:
        if self._pace is not None:
            self._pace.cancel()
            self._pace = None

    def _check_pace(self) -> None:
        """End the connection if a client is slow, unless it is waiting for this side."""
        since_s = self._began_s if self._part == "head" else self._heard_s
        left_s = SLOW_S - (self.loop.time() - since_s)
        if left_s <= 0 and self._is_waited_for():
            left_s = SLOW_S
        if left_s > 0:
            self._pace = self.loop.call_later(left_s, self._check_pace)
            return
        self._pace = None
        if self._part == "body" and self.cycle.response_complete:
            self.transport.close()
            return
        if self._part == "body":
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._refuse(408, b"The request did not arrive in time.\n")

    def _is_waited_for(self) -> bool:
        """Return whether the client may wait for an answer, or for its body to be read."""
        cycle = self.cycle
        if self._part == "head" or cycle.response_complete:
            return cycle is not None and not cycle.response_complete
        return cycle.response_started or cycle.waiting_for_100_continue or self.flow.read_paused

    def _refuse(self, status: int, reason: bytes) -> None:
        head = b"content-type: text/plain\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head % len(reason) + reason)
        self.transport.close()

    def _head_without_upgrade(self) -> bytes:
        connection = b",".join(value for name, value in self.headers if name == b"connection")
        tokens = [token.strip() for token in connection.split(b",")]
        remaining = b", ".join(token for token in tokens if token.lower() != b"upgrade")
        others = [header for header in self.headers if header[0] not in (b"connection", b"upgrade")]
        lines = [b"%s: %s" % header for header in (*others, (b"connection", remaining))]
        first = b"%s %s HTTP/%s" % (
            self.scope["method"].encode(),
            self.url,
            self.parser.get_http_version().encode(),
        )
        return b"\r\n".join([first, *lines, b"", b""])

    def _should_upgrade(self) -> bool:
        """Return whether the connection becomes a WebSocket, which needs the method GET."""
        return bool(self.scope["method"] == "GET" and super()._should_upgrade())

    def _is_asked_again(self) -> bool:
        """Return whether this head asks for an unsupported protocol."""
        if not self.parser.should_upgrade():
            return False
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("This server is not a proxy.")  # the answer is a 400
        self.scope["method"] = self.parser.get_method().decode("ascii")
        return not self._should_upgrade()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part, self._began_s = "head", self._heard_s

    def on_message_complete(self) -> None:
        self._head = 0
        self._part = None
        if not self._is_asked_again():
            super().on_message_complete()

    def on_headers_complete(self) -> None:
        if self._is_asked_again():
            return
        named = _authority(self.url)
        if named and named != next((v for n, v in self.headers if n == b"host"), named):
            # now there are two hosts, so the request is refused
            self.headers.append((b"host", named))
        super().on_headers_complete()
        self._head = 0
        self._part = "body"

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head = 0


def _authority(target: bytes) -> bytes | None:
    """Return the host of a target that is a whole URL, as sent to proxies (RFC 9112, 3.2.2)."""
    _, scheme, rest = target.partition(b"://")
    return re.split(b"[/?#]", rest, maxsplit=1)[0] if scheme and target[:1] not in b"/*" else None


_websocket_log.setLevel(logging.WARNING)
# it logs this for every connection that is refused with an HTTP status
_websocket_log.addFilter(lambda record: "completing handshake" not in str(record.msg))
_websocket_log.addFilter(lambda record: not _is_stopping(record))
_websocket_log.addFilter(lambda record: _in_one_line(record))


def _is_stopping(record: logging.LogRecord) -> bool:
    """Return whether the record is about a connection cancelled because the server stops."""
    return record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)


def _in_one_line(record: logging.LogRecord) -> bool:
    """Remove the traceback from a record that says that a client sent invalid text."""
    if record.exc_info is not None and isinstance(record.exc_info[1], UnicodeDecodeError):
        record.exc_info = None
    return True


class _JoinedWrites:
    """A connection that sends the head and the body of an answer together, and so further chunks.

    uvicorn writes them separately, and one send costs more than the rest of a small answer: 73 of
    200 µs. The head waits for the body until the end of this step of the loop, and chunks wait for
    each other.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._writes = 0
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send data, or hold it back."""
        self._writes += 1
        self._pieces.append(data)
        self._size += len(data)
        is_body = self._writes == 2  # which is often the end, and need not wait for other requests
        if is_body or self._size > JOINED_AT_MOST:  # or uvicorn would not notice a slow client
            self._send()
        elif len(self._pieces) == 1:
            self._loop.call_soon(self._send)

    def close(self) -> None:
        """Close the connection when everything is sent."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._pieces:
            pieces, self._pieces, self._size = self._pieces, [], 0
            self._transport.write(b"".join(pieces))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(OneProtocol):
    """uvicorn's protocol without its access log, which puts the connection's peer in the scope.

    The setting ``access_log=False`` would remove the handlers of the process's uvicorn.access
    logger, which other code may use.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope = cast("dict[str, Any]", self.scope)
        scope[PEER] = self.client  # whatever a proxy's header says about the client
        scope[TRANSPORT] = self.transport

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header without the space after its value, which is not part of it (RFC 9110, 5.5).

        httptools leaves the space there. MCP compares headers with the body, and h11 refuses to
        forward such a value.
        """
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not None and self.cycle is not before:  # an upgrade has none
            joined = _JoinedWrites(self.transport, self.loop)
            self.cycle.transport = cast("asyncio.Transport", joined)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self.transport.close()  # or Python 3.10 warns of a TLS transport that its peer has reset

    def shutdown(self) -> None:
        """Close an idle connection at once.

        Over TLS a close waits for the client's closing alert. A client that keeps its connection
        for later does not send it, so the server would stop seconds late and leave a socket open.
        """
        super().shutdown()
        if self.transport.is_closing() and self.transport.get_extra_info("ssl_object"):
            self.transport.abort()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol without addresses in its log: they have session tokens."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = self.conn.logger = _websocket_log
        self._early = b""

    async def run_asgi(self) -> None:
        """Run the application; put the peer of the connection in the scope, as for HTTP."""
        scope = cast("dict[str, Any]", self.scope)
        scope[PEER] = self.client
        await super().run_asgi()

    def data_received(self, data: bytes) -> None:
        """Read bytes; answer an invalid handshake with 400, where uvicorn would not answer.

        Data that arrives before the application has accepted waits: a client may not send it yet,
        and the protocol cannot read it yet.
        """
        if self.handshake_initiated and not self.handshake_complete:
            self._early += data
            self.transport.pause_reading()
            return
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            body = f"This is not a WebSocket handshake: {self.conn.handshake_exc}".encode()
            head = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
            ended = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(f"{head}{ended}".encode() + body)
            self.transport.close()

    async def send(self, message: Any) -> None:
        """Pass on a message of the application; after accepting, read data that came early."""
        await super().send(message)
        if message["type"] == "websocket.accept" and self._early and not self.disconnected:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)
