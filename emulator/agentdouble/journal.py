"""What was asked, what was answered, and which unknowns the answer relied on.

The middleware writes one entry a request, secrets redacted, bodies cut at 64 KiB. It is also
where the response header that names the relied-on unknowns is set: those known when the
headers leave; the journal has them all.
"""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import re
import shlex
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import ledger
from agentdouble.clock import Clock
from agentdouble.ledger import Ledger

_log = logging.getLogger(__name__)

UNKNOWNS_HEADER = b"x-agentdouble-unknowns"
BODY_LIMIT = 64 * 1024
REDACTED = "***"

_SECRET_HEADERS = frozenset({"cookie", "set-cookie", "x-security-token", "x-api-key"})
_NOT_IN_CURL = frozenset({"host", "content-length", "connection", "accept-encoding"})


@dataclass
class Entry:
    """One request and its answer; ``duration_ms`` is in milliseconds."""

    id: int
    at: dt.datetime
    method: str
    url: str
    request_headers: list[tuple[str, str]]
    request_body: str = ""
    status: int | None = None
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    response_body: str = ""
    duration_ms: float | None = None
    unknowns: list[str] = field(default_factory=list)

    def curl(self) -> str:
        """Return a curl command that asks the same; secrets stand as ``***``."""
        words = ["curl", "-X", self.method, self.url]
        for name, value in self.request_headers:
            if name not in _NOT_IN_CURL:
                words += ["-H", f"{name}: {value}"]
        if self.request_body:
            words += ["--data-raw", self.request_body]
        return shlex.join(words)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON-ready data, with its curl line."""
        return {
            "id": self.id,
            "at": self.at.isoformat(),
            "method": self.method,
            "url": self.url,
            "request_headers": dict(self.request_headers),
            "request_body": self.request_body,
            "status": self.status,
            "response_headers": dict(self.response_headers),
            "response_body": self.response_body,
            "duration_ms": self.duration_ms,
            "unknowns": self.unknowns,
            "curl": self.curl(),
        }


class Journal:
    """The last ``size`` requests, oldest first."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._entries: deque[Entry] = deque(maxlen=size)
        self._ids = itertools.count(1)
        self._clock = clock

    def entries(self) -> Sequence[Entry]:
        """Return the entries that are kept, oldest first."""
        return tuple(self._entries)

    def clear(self) -> None:
        """Forget every entry; ids go on."""
        self._entries.clear()

    def open(self, scope: Scope) -> Entry:
        """Start the entry of a request that has just arrived."""
        headers = _headers(scope["headers"])
        host = next((value for name, value in headers if name == "host"), "")
        query = scope["query_string"].decode("latin-1")
        entry = Entry(
            id=next(self._ids),
            at=self._clock.now(),
            method=scope["method"],
            url=f"{scope['scheme']}://{host}{scope['path']}{'?' + query if query else ''}",
            request_headers=headers,
        )
        self._entries.append(entry)
        return entry


class JournalMiddleware:
    """Put a ledger in force for each request and write the request into the journal.

    Requests below ``except_prefix`` are not written.
    """

    def __init__(
        self, app: ASGIApp, journal: Journal, in_force: Ledger, *, except_prefix: str
    ) -> None:
        self._app = app
        self._journal = journal
        self._ledger = in_force
        self._except_prefix = except_prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(self._except_prefix):
            with ledger.using(self._ledger):
                await self._app(scope, receive, send)
            return
        recorder = _Recorder(self._journal.open(scope), receive, send)
        with ledger.using(self._ledger) as recorder.noted:
            try:
                await self._app(scope, recorder.receive, recorder.send)
            finally:
                recorder.close()


class _Recorder:
    """Listens to one request and its answer on their way through."""

    def __init__(self, entry: Entry, receive: Receive, send: Send) -> None:
        self.noted: set[str] = set()
        self._entry = entry
        self._receive = receive
        self._send = send
        self._request = _Text()
        self._response = _Text()
        self._started = time.perf_counter()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._request.add(message.get("body", b""))
            if not message.get("more_body", False):
                self._entry.request_body = self._request.value()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if self.noted:
                headers.append((UNKNOWNS_HEADER, ", ".join(sorted(self.noted)).encode()))
            message = {**message, "headers": headers}
            self._entry.status = message["status"]
            self._entry.response_headers = _headers(headers)
        elif message["type"] == "http.response.body":
            self._response.add(message.get("body", b""))
            if not message.get("more_body", False):
                self.close()  # before the caller has the answer, so that it finds it all here
        await self._send(message)

    def close(self) -> None:
        """Finish the entry, once: at the end of the answer, or when it is clear there is none."""
        if self._entry.duration_ms is not None:
            return
        self._entry.duration_ms = round((time.perf_counter() - self._started) * 1000, 3)
        self._entry.response_body = self._response.value()
        self._entry.unknowns = sorted(self.noted)
        entry = self._entry
        path = entry.url.partition("://")[2].partition("/")[2]
        _log.info("%s /%s %s, %.1f ms", entry.method, path, entry.status, entry.duration_ms)


class _Text:
    """The start of a body, as text, and how much of it was cut off."""

    def __init__(self) -> None:
        self._kept = b""
        self._cut = 0

    def add(self, chunk: bytes) -> None:
        room = BODY_LIMIT - len(self._kept)
        self._kept += chunk[:room]
        self._cut += max(0, len(chunk) - room)

    def value(self) -> str:
        text = self._kept.decode("utf-8", "replace")
        return f"{text}... ({self._cut} more bytes)" if self._cut else text


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    pairs = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw)
    return [(name, redact(name, value)) for name, value in pairs]


def redact(name: str, value: str) -> str:
    """Return a header's value without its secret; ``name`` is lower-case."""
    if name in _SECRET_HEADERS:
        return REDACTED
    if name in ("authorization", "proxy-authorization"):
        if value.startswith("HMAC-SHA256 ") and "Signature=" in value:
            return re.sub(r"Signature=.*", f"Signature={REDACTED}", value, flags=re.S)
        scheme, _, rest = value.partition(" ")
        return f"{scheme} {REDACTED}" if rest else REDACTED
    return value
