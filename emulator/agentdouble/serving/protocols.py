"""uvicorn's protocols, changed for a double."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from agentdouble.serving.connections import PEER, TRANSPORT
from agentdouble.serving.one_protocol import OneProtocol

LARGEST_WEBSOCKET_MESSAGE = 64 * 1024 * 1024  # bytes

_log = logging.getLogger("agentdouble.websocket")
_log.setLevel(logging.WARNING)
# it logs this for every connection that is refused with an HTTP status
_log.addFilter(lambda record: "completing handshake" not in str(record.msg))
_log.addFilter(lambda record: not _is_stopping(record))
_log.addFilter(lambda record: _in_one_line(record))


def _is_stopping(record: logging.LogRecord) -> bool:
    """Return whether the record is about a connection cancelled because the server stops."""
    return record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)


def _in_one_line(record: logging.LogRecord) -> bool:
    """Remove the traceback from a record that says that a client sent invalid text."""
    if record.exc_info is not None and isinstance(record.exc_info[1], UnicodeDecodeError):
        record.exc_info = None
    return True


class _HeadWithBody:
    """A connection that sends the head of an answer together with the body that follows at once.

    uvicorn writes them separately, and one send costs more than the rest of a small answer: 73 of
    200 µs. If no body follows in the same step of the loop, the head is sent alone.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._begun = False
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        """Send data; hold the first piece back until the next one."""
        if not self._begun:
            self._begun = True
            self._head = data
            self._loop.call_soon(self._send_head)
            return
        head, self._head = self._head, None
        self._transport.write(data if head is None else head + data)

    def close(self) -> None:
        """Close the connection when everything is sent."""
        self._send_head()
        self._transport.close()

    def _send_head(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)

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
            joined = _HeadWithBody(self.transport, self.loop)
            self.cycle.transport = cast("asyncio.Transport", joined)
            # uvicorn 0.35 does not close when the client requests it
            self.cycle.keep_alive = self.cycle.keep_alive and self.parser.should_keep_alive()

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
        self.logger = self.conn.logger = _log
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
            said = f"This is no handshake of a WebSocket: {self.conn.handshake_exc}".encode()
            head = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
            ended = f"content-length: {len(said)}\r\nconnection: close\r\n\r\n"
            self.transport.write(f"{head}{ended}".encode() + said)
            self.transport.close()

    # uvicorn 0.35 does not notice a slow client, so all data would wait in memory

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.writable.set()

    async def send(self, message: Any) -> None:
        """Pass on a message of the application, without the content-length of a refusal.

        uvicorn before 0.53 adds a second content-length, and clients reject both.
        """
        if message["type"] == "websocket.http.response.start":
            kept = [
                (name, value) for name, value in message["headers"] if name != b"content-length"
            ]
            message = {**message, "headers": kept}
        await super().send(message)
        if message["type"] == "websocket.accept" and self._early and not self.disconnected:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)
