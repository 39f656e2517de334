"""uvicorn's HTTP protocol with connections that take turns and make room for others."""

from __future__ import annotations

import asyncio
import math
import re
from typing import Any, cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from agentdouble import socket_lookup
from agentdouble.addresses import address_of
from agentdouble.serving import room
from agentdouble.serving.one_protocol import OneProtocol
from agentdouble.serving.turns import Rank, Turns

LARGEST_HEAD = 256 * 1024  # bytes
_END_OF_HEAD = b"\r\n\r\n"
_PIECE = 4 * 1024  # bytes in which the end of a head is searched
_SMALL_PIECE = 1024  # of data that is not a whole head: perhaps a hundred chunks
_LARGE_PIECE = 64 * 1024  # of a body whose length is known, which costs next to nothing
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,6})[ \t]*(?=\r\n|$)", re.IGNORECASE)
_UNKNOWN, _ANYBODY = -2, -1  # callers that are not user ids
HEAD_S = 30.0  # in which the head of a request arrives, since its first byte
PAUSE_S = 60.0  # between two pieces of a body, unless the answer has begun: they may talk in turns


class Place:
    """The turns and the room that the connections of one server share."""

    def __init__(self) -> None:
        self.room = room.Room()
        self._turns: Turns | None = None

    def turns(self, loop: asyncio.AbstractEventLoop) -> Turns:
        """Return the turns, which belong to the loop that serves."""
        self._turns = self._turns or Turns(loop)
        return self._turns


class _Flow(FlowControl):
    """A flow control that stops reading a connection while its data waits for a turn."""

    held = False

    def hold(self) -> None:
        """Stop reading, even if other code resumes it."""
        self.held = True
        self.pause_reading()

    def resume_reading(self) -> None:
        """Continue to read, unless the connection is held."""
        if not self.held:
            super().resume_reading()


class TurnTaking(OneProtocol):
    """A connection that is read a piece at a time, when it has a turn.

    ``place`` is shared by the connections of its server.
    """

    def __init__(self, *args: Any, place: Place, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._room = place.room
        self._turns = place.turns(self.loop)
        self._turn = self._have_turn  # one bound method, the key of this connection's turn
        self._waits = False
        self._rank = Rank.NEW
        self._caller = _UNKNOWN
        self._unread = bytearray()
        self._head = 0  # bytes that were neither a body nor the end of a head
        self._rest = 0  # bytes of a body that are still to come
        self._due = math.inf  # when the client must have sent more
        self._begun = False  # whether a request ever was
        self._reads_body = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a connection; if there is no room, its request will be refused."""
        super().connection_made(cast("asyncio.Transport", transport))
        self.flow: _Flow = _Flow(self.transport)
        self._due = self.loop.time() + HEAD_S
        if self._room.has_place(len(self.connections)):
            self._room.listen_to(self)
        else:
            self.app = cast("Any", room.refuse)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._leave()
        super().connection_lost(exc)
        self.transport.close()  # or Python 3.10 warns of a TLS transport that its peer has reset

    def give_way(self) -> None:
        """Close the connection at once, to make room for another."""
        self.transport.abort()

    def end_if_late(self, now: float) -> None:
        """Close the connection if the rest of a request does not come; what waits here is not late."""
        if now < self._due or self._waits or self._unread or self.pipeline or self.flow.read_paused:
            return
        if not self._begun:
            self.transport.abort()  # no request was begun
        elif not self._reads_body:
            self._refuse(408, f"The head of the request did not arrive within {HEAD_S:g} s.")
        elif not self.cycle.response_started:
            self._refuse(408, f"The body of the request paused for more than {PAUSE_S:g} s.")

    def data_received(self, data: bytes) -> None:
        """Read the received data when the connection has a turn."""
        self._unset_keepalive_if_required()
        self._room.hear(self)
        if self._reads_body:
            self._due = self.loop.time() + PAUSE_S
        elif self._due == math.inf:
            self._due = self.loop.time() + HEAD_S
        if self.cycle is not None and self.cycle.response_complete and not self._unread:
            self._rank = Rank.KNOWN
        if self._is_whole(data) and self._turns.take(self._rank):
            super().data_received(data)
            return
        self._unread += data
        if self._waits or self.pipeline:
            self.flow.hold()
        else:
            self._go_on()

    def _is_whole(self, data: bytes) -> bool:
        """Return whether the data is one small request, as is usual, with nothing before it."""
        if len(data) > _PIECE or self._unread or self._waits or self.pipeline:
            return False
        if self._head or self._rest:
            return False
        end = data.find(_END_OF_HEAD)
        rest = len(data) - end - len(_END_OF_HEAD)
        return end > 0 and rest == (_length_of_body(data[:end]) if rest else 0)

    def _go_on(self) -> None:
        """Read until all is read, or until a turn or an answer must be waited for."""
        while self._unread and not self.pipeline:
            if not self._turns.take(self._rank):
                self._wait()
                return
            self._read_piece()
        if not self.pipeline and self.flow.held:
            self._let_come()

    def _wait(self) -> None:
        self._waits = True
        if self._unread:
            self.flow.hold()
        if self._caller == _UNKNOWN:  # not needed while all connections are served at once
            self._caller = user_of(self.transport)
        self._turns.wait(self._turn, self._rank, self._caller)

    def _have_turn(self) -> None:
        self._waits = False
        if self.pipeline:
            super().on_response_complete()  # this starts the next request
        else:
            self._read_piece()
        self._go_on()

    def _read_piece(self) -> None:
        size = self._piece_size()
        piece = bytes(self._unread[:size])
        del self._unread[:size]
        self._head += len(piece)
        super().data_received(piece)
        if self._head > LARGEST_HEAD:
            self._refuse(431, "The head of the request is too large.")
        elif self.transport.is_closing():
            self._unread.clear()

    def _piece_size(self) -> int:
        """Return how much to read now: a head to its end, the body so far, or a piece."""
        if self._rest > 0:
            return min(self._rest, _LARGE_PIECE)
        end = self._unread.find(_END_OF_HEAD, 0, _PIECE)
        return _SMALL_PIECE if end < 0 else end + len(_END_OF_HEAD)

    def _let_come(self) -> None:
        """Resume reading, unless the received data waits for the application."""
        self.flow.held = False
        cycle = self.cycle
        if cycle is None or cycle.response_complete or len(cycle.body) <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()

    def _leave(self) -> None:
        self._room.forget(self)
        self._turns.leave(self._turn, self._caller)
        self._unread.clear()

    def _refuse(self, status: int, reason: str) -> None:
        head = STATUS_LINE[status] + b"content-type: text/plain\r\nconnection: close\r\n"
        length = b"content-length: %d\r\n\r\n" % (len(reason) + 1)
        self.transport.write(head + length + reason.encode() + b"\n")
        self.transport.close()
        self._unread.clear()

    def handle_websocket_upgrade(self) -> None:
        """Give the connection, and the data already received, to the WebSocket protocol."""
        unread = bytes(self._unread)
        self._leave()
        self.flow.held = False
        super().handle_websocket_upgrade()
        self.flow.resume_reading()
        if unread:
            cast("asyncio.Protocol", self.transport.get_protocol()).data_received(unread)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = True
        self._head = self._rest = 0

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head = 0
        self._reads_body = True
        self._due = self.loop.time() + PAUSE_S
        for name, value in self.headers:
            if name == b"content-length" and value.isdigit():
                self._rest = int(value)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head = 0
        self._rest -= len(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._reads_body = False
        self._due = math.inf
        self._rank = Rank.FURTHER  # the rank of data that follows before the answer
        self._room.forget(self)

    def on_response_complete(self) -> None:
        """Make the next request, if it has arrived, wait for its turn."""
        if self.pipeline and not self.transport.is_closing():
            self._wait()
            return
        super().on_response_complete()
        if not self.transport.is_closing():
            self._room.listen_to(self)


def user_of(transport: asyncio.BaseTransport) -> int:
    """Return the user id at the other end; sessions have their own users where possible."""
    client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    try:
        ends = [(address_of(host), port) for host, port, *_ in (client, server)]
    except (TypeError, ValueError):  # not a connection over TCP
        return _ANYBODY
    found = socket_lookup.look_up(*ends)
    return _ANYBODY if found is None else found[0]


def _length_of_body(head: bytes) -> int:
    """Return the Content-Length of a head, or -1 if it has none or more than one."""
    found = _LENGTH.findall(head)
    return int(found[0]) if len(found) == 1 else -1
