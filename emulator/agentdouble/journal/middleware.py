"""The middleware that writes an entry of the journal for each request and each WebSocket.

It also sets the response headers that list the unknowns that the answer relied on, the fields that
nothing read, and the faults that were injected. The headers list those known when they are sent;
the journal lists all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.core import ledger, request_cause
from agentdouble.core.code_tool import hosted_by
from agentdouble.core.ledger import Ledger
from agentdouble.core.log_filters import printable
from agentdouble.journal.entries import UNSEEN, Entry, Journal, Start, current_entry

_log = logging.getLogger(
    "agentdouble.journal.entries"
)  # users ask for the log of requests by this name

UNKNOWNS_HEADER = b"x-agentdouble-unknowns"
UNREAD_HEADER = b"x-agentdouble-unread"
FAULTS_HEADER = b"x-agentdouble-faults"
_UNREAD_NAMES = 10  # in the header, whose size clients limit


class JournalMiddleware:
    """A middleware that writes each request into the journal.

    During a request, unknowns are decided by ``in_force``, and ``run_code`` finds the double
    through ``variables``. Requests below ``except_prefix`` and those that are ``UNSEEN`` are not
    written.
    """

    def __init__(
        self,
        app: ASGIApp,
        journal: Journal,
        in_force: Ledger,
        variables: Mapping[str, str],
        *,
        except_prefix: str,
    ) -> None:
        self._app = app
        self._journal = journal
        self._ledger = in_force
        self._variables = variables
        self._except_prefix = except_prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        with ledger.using(self._ledger) as noted, hosted_by(self._variables):
            if UNSEEN in scope or scope["path"].startswith(self._except_prefix):
                await self._app(scope, receive, send)
            else:
                await self._record(scope, receive, send, noted)

    async def _record(
        self, scope: Scope, receive: Receive, send: Send, noted: AbstractSet[str]
    ) -> None:
        entry = self._journal.open(scope)
        kind = _Recorder if scope["type"] == "http" else _WebSocketRecorder
        recorder = kind(self._journal, entry, noted, receive, send)
        token = current_entry.set(entry)
        cause = request_cause.current.set((self._journal.name, entry.id))
        try:
            await self._app(scope, recorder.receive, recorder.send)
        finally:
            request_cause.current.reset(cause)
            current_entry.reset(token)
            recorder.close()


class _Recorder:
    """A wrapper of ``receive`` and ``send`` that records one request and its answer.

    ``noted`` are the unknowns on which the answer rests.
    """

    def __init__(
        self,
        journal: Journal,
        entry: Entry,
        noted: AbstractSet[str],
        receive: Receive,
        send: Send,
    ) -> None:
        self._noted = noted
        self._journal = journal
        self._entry = entry
        self._receive = receive
        self._send = send
        self._request = Start()
        self._response = Start()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            body = message.get("body", b"")
            self._request.add(body)
            self._entry.received_bytes += len(body)
            if not message.get("more_body", False):
                self._entry.request_start = self._request
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if self._noted:
                headers.append((UNKNOWNS_HEADER, ", ".join(sorted(self._noted)).encode()))
            if self._entry.unread:
                names = ", ".join(map(printable, self._entry.unread[:_UNREAD_NAMES]))
                headers.append((UNREAD_HEADER, names.encode("ascii", "backslashreplace")))
            if self._entry.faults:
                headers.append((FAULTS_HEADER, ", ".join(self._entry.faults).encode()))
            message = {**message, "headers": headers}
            self._entry.status = message["status"]
            self._entry.response_head = headers
            self._entry.response_start = self._response  # a stream is shown while it runs
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            self._response.add(body)
            self._entry.sent_bytes += len(body)
            if not message.get("more_body", False):
                self.close()  # before the caller has the answer, so that it finds a complete entry
        await self._send(message)

    def close(self) -> None:
        """Finish the entry once: at the end of the answer, or when no answer will follow."""
        entry = self._entry
        if entry.duration_ms is not None:
            return
        entry.duration_ms = round((time.perf_counter() - entry.started) * 1000, 3)
        entry.unknowns = sorted(self._noted)
        if self._journal.events.watched:
            self._journal.publish(entry, "answered")
        if not _log.isEnabledFor(logging.INFO):
            return
        path = entry.url.partition("://")[2].partition("/")[2]
        args = (printable(entry.method), printable(path), entry.status, entry.duration_ms)
        _log.handle(  # not info(), because its search for the caller costs as much as all the rest
            _log.makeRecord(_log.name, logging.INFO, __file__, 0, "%s /%s %s, %.1f ms", args, None)
        )


class _WebSocketRecorder(_Recorder):
    """A wrapper that records a WebSocket: its handshake, and how many bytes its messages have."""

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.receive":
            self._entry.received_bytes += _size(message)
        return message

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "websocket.send":
            self._entry.sent_bytes += _size(message)
        elif kind in ("websocket.accept", "websocket.http.response.start"):
            self._entry.status = message.get("status", 101)
            self._entry.response_head = list(message.get("headers", ()))
        elif kind == "websocket.close" and self._entry.status is None:
            self._entry.status = 403  # what the server answers for a refused handshake
        await self._send(message)


def _size(message: Message) -> int:
    text: str | None = message.get("text")
    return len(message.get("bytes") or b"") if text is None else len(text.encode())
