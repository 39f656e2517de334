"""uvicorn's protocols, as a double speaks them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from agentdouble.serving.connections import KEPT, PEER, TRANSPORT
from agentdouble.serving.turn_taking import TurnTaking

LARGEST_WEBSOCKET_MESSAGE = 64 * 1024 * 1024  # bytes

_log = logging.getLogger("agentdouble.websocket")
_log.setLevel(logging.WARNING)
# it says so of every connection that is refused with an HTTP status
_log.addFilter(lambda record: "completing handshake" not in str(record.msg))
_log.addFilter(lambda record: not _is_stopping(record))
_log.addFilter(lambda record: _in_one_line(record))


def _is_stopping(record: logging.LogRecord) -> bool:
    """Whether it is about a connection that is cancelled, as the server stops."""
    return record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)


def _in_one_line(record: logging.LogRecord) -> bool:
    """Take the traceback off what says that a client has sent no text."""
    if record.exc_info is not None and isinstance(record.exc_info[1], UnicodeDecodeError):
        record.exc_info = None
    return True


class _HeadWithBody:
    """A connection that sends the head of an answer together with the body that follows at once.

    uvicorn writes the two apart, and a send costs more than all the rest of a small answer: 73
    of 200 µs. Where no body follows in the same step of the loop, the head goes alone.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._begun = False
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        """Send something; what is first waits for what comes next."""
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


class HttpProtocol(TurnTaking):
    """uvicorn's protocol that keeps who is connected, without its access log.

    The setting ``access_log=False`` would take the handlers off the process's uvicorn.access
    logger, which may be somebody else's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False
        self._kept: dict[str, Any] = {}

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope = cast("dict[str, Any]", self.scope)
        scope[PEER] = self.client  # whatever a proxy's header will say of who asks
        scope[TRANSPORT] = self.transport
        scope[KEPT] = self._kept

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header without the space after its value, which is no part of it (RFC 9110, 5.5).

        httptools leaves it there. MCP compares headers with what the body says, and h11 refuses
        to send such a value onward.
        """
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not None and self.cycle is not before:  # one that is an upgrade has none
            joined = _HeadWithBody(self.transport, self.loop)
            self.cycle.transport = cast("asyncio.Transport", joined)
            # uvicorn 0.35 does not close where the client asks for it
            self.cycle.keep_alive = self.cycle.keep_alive and self.parser.should_keep_alive()

    def shutdown(self) -> None:
        """Close an idle connection at once.

        Over TLS a close waits for the client's closing alert, which one that keeps its connection
        for later does not send: the server would stop seconds late and leave a socket open.
        """
        super().shutdown()
        if self.transport.is_closing() and self.transport.get_extra_info("ssl_object"):
            self.transport.abort()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol that logs no addresses: a session's has its token in it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = self.conn.logger = _log
        self._early = b""

    async def run_asgi(self) -> None:
        """Have the connection answered; who is at its other end is kept, as with HTTP."""
        scope = cast("dict[str, Any]", self.scope)
        scope[PEER], scope[KEPT] = self.client, {}
        await super().run_asgi()

    def data_received(self, data: bytes) -> None:
        """Take up bytes; refuse those that begin no WebSocket, where uvicorn would be silent.

        What comes before the application has accepted waits: a client may not send it, and the
        protocol cannot read it yet.
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

    # uvicorn 0.35 does not hear that a client is slow: all would wait in memory

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.writable.set()

    async def send(self, message: Any) -> None:
        """Pass on what the application says; the length of a refusal is uvicorn's to tell.

        Before 0.53 it adds one of its own to one that is there, and clients take neither.
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
