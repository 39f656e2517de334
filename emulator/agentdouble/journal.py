"""The journal of requests and answers, with their unknowns, unread fields, faults and failures.

The middleware writes one entry for each request. Secrets are hidden, and bodies are cut at 64 KiB.
It also sets the response headers that list the unknowns the answer relied on, and the armed faults
that happened. The headers have those known when they are sent; the journal has all of them.
"""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import re
import shlex
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import ledger
from agentdouble.clock import Clock
from agentdouble.ledger import Ledger
from agentdouble.mistakes import printable

_log = logging.getLogger(__name__)

UNKNOWNS_HEADER = b"x-agentdouble-unknowns"
FAULTS_HEADER = b"x-agentdouble-faults"
BODY_LIMIT = 64 * 1024
UNREAD_LIMIT = 100
UNREAD_LENGTH = 200
REDACTED = "***"

_SECRET_HEADERS = frozenset({"cookie", "set-cookie", "x-security-token", "x-api-key"})
_TOKEN = re.compile(r"((?:[?&]|\\u0026|%26)Authorization(?:=|%3D))[^&\"'\s\\#]+", re.IGNORECASE)
_STRING = r'"(?:[^"\\]|\\.)*"?'
_API_KEYS = re.compile(rf'"ApiKeys"\s*:\s*\[(?:[^\]"]|{_STRING})*')
_API_KEY = re.compile(rf'("Key"\s*:\s*){_STRING}')
_SECRET_FIELD = re.compile(rf'("(?:ApiKey|LarkAppSecret|SecretAccessKey)"\s*:\s*){_STRING}')
_TELLING = r'"(?=[^"]*(?:KEY|SECRET|TOKEN|PASSW))[^"]*"'  # searched once, independent of the rest
_WHOLE = r'"(?:[^"\\]|\\.)*"'  # with its closing quote: the rest is searched only after it
_IN_QUERY = re.compile(
    r"(?i:authorization|(?:.*[-_])?(?:key|secret|signature|passw(?:or)?d|jwt|token)|apikey)"
    r"|.*[a-z](?:Key|Secret|Signature|Password|Jwt|Token)"
)
_PLACES = frozenset({"nexttoken", "pagetoken", "clienttoken"})  # positions in a list, not secrets
_VARIABLES = (  # of an environment: {"Key": "MODEL_API_KEY", "Value": "..."}, in either order
    re.compile(rf'("Key"\s*:\s*{_TELLING}\s*,\s*"Value"\s*:\s*){_STRING}()', re.IGNORECASE),
    re.compile(rf'("Value"\s*:\s*){_WHOLE}(\s*,\s*"Key"\s*:\s*{_TELLING})', re.IGNORECASE),
)
_NOT_IN_CURL = frozenset({"host", "content-length", "connection", "accept-encoding"})


RawHeaders = Sequence[tuple[bytes, bytes]]


@dataclass
class Entry:
    """One request and its answer; ``duration_ms`` is in milliseconds.

    Headers and bodies are converted to text, without secrets, when they are read, because most
    never are.
    """

    id: int
    at: dt.datetime
    method: str
    url: str
    request_head: RawHeaders = field(repr=False)
    request_start: Start | None = field(default=None, repr=False)
    status: int | None = None
    response_head: RawHeaders = field(default=(), repr=False)
    response_start: Start | None = field(default=None, repr=False)
    duration_ms: float | None = None
    unknowns: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set, repr=False)

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        """The request's headers, with names in lower case."""
        shown = _headers(self.request_head)
        return [(name, REDACTED if name in self.secrets else value) for name, value in shown]

    @property
    def request_body(self) -> str:
        """The request's body, empty until all of it has been read."""
        return self.request_start.text() if self.request_start else ""

    @property
    def response_headers(self) -> list[tuple[str, str]]:
        """The answer's headers, with names in lower case."""
        return _headers(self.response_head)

    @property
    def response_body(self) -> str:
        """The answer's body, empty until it has been sent completely."""
        return self.response_start.text() if self.response_start else ""

    def curl(self) -> str:
        """Return a curl command that sends the same request; secrets are shown as ``***``."""
        words = ["curl", "-X", self.method, self.url]
        for name, value in self.request_headers:
            if name not in _NOT_IN_CURL:
                words += ["-H", f"{name}: {value}"]
        if self.request_body:
            words += ["--data-raw", self.request_body]
        return shlex.join(words)

    def to_dict(self, *, bodies: bool = True) -> dict[str, Any]:
        """Return the entry as JSON-ready data, with headers and bodies if ``bodies`` is true."""
        if not bodies:
            return {
                "id": self.id,
                "at": self.at.isoformat(),
                "method": self.method,
                "url": self.url,
                "status": self.status,
                "duration_ms": self.duration_ms,
                "unknowns": self.unknowns,
                "unread": self.unread,
                "faults": self.faults,
                "failures": self.failures,
            }
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
            "unread": self.unread,
            "faults": self.faults,
            "failures": self.failures,
            "curl": self.curl(),
        }


_current: ContextVar[Entry | None] = ContextVar("agentdouble_journal_entry", default=None)


def note_secret(name: str) -> None:
    """Hide the header and the query parameter of this name in the current request."""
    entry = _current.get()
    if entry is not None:
        entry.secrets.add(name.lower())
        address, mark, query = entry.url.partition("?")
        wanted = name.lower()
        entry.url = f"{address}{mark}{_hidden(query, lambda found: found.lower() == wanted)}"


def note_unread(fields: Iterable[str]) -> None:
    """Note fields of the current request that nothing reads, by their paths (``Tags.0.Key``).

    Only the first ``UNREAD_LIMIT`` are kept.
    """
    entry = _current.get()
    if entry is None:
        return
    room = max(0, UNREAD_LIMIT - len(entry.unread))
    entry.unread += [_printable(name[:UNREAD_LENGTH]) for name in itertools.islice(fields, room)]


def note_fault(what: str) -> None:
    """Note a fault that happened to the current request."""
    entry = _current.get()
    if entry is not None:
        entry.faults.append(what)


def note_failure(reference: str) -> None:
    """Note a failure of the double at the current request, by its reference in the log."""
    entry = _current.get()
    if entry is not None and reference not in entry.failures:
        entry.failures.append(reference)


def _printable(text: str) -> str:
    """Return text that can be encoded, because JSON can contain a lone surrogate."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Journal:
    """The last ``size`` requests, oldest first."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._entries: deque[Entry] = deque(maxlen=size)
        self._ids = itertools.count(1)
        self._clock = clock

    def entries(self) -> Sequence[Entry]:
        """Return the entries that are kept, oldest first."""
        return tuple(self._entries)

    def find(self, id_: int) -> Entry | None:
        """Return the entry with this id if it is kept, or None."""
        return next((one for one in self.entries() if one.id == id_), None)

    def clear(self) -> None:
        """Remove every entry; the ids continue."""
        self._entries.clear()

    def open(self, scope: Scope) -> Entry:
        """Start the entry of a request that has just arrived."""
        headers = scope["headers"]
        host = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
        query = _query(scope)
        entry = Entry(
            id=next(self._ids),
            at=self._clock.now(),
            method=scope["method"],
            url=f"{scope['scheme']}://{host}{scope['path']}{'?' + query if query else ''}",
            request_head=headers,
        )
        self._entries.append(entry)
        return entry


class JournalMiddleware:
    """A middleware that sets the ledger in force and writes each request into the journal.

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
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket" or scope["path"].startswith(self._except_prefix):
            with ledger.using(self._ledger):
                await self._app(scope, receive, send)
            return
        entry = self._journal.open(scope)
        recorder = _Recorder(entry, receive, send)
        token = _current.set(entry)
        with ledger.using(self._ledger) as recorder.noted:
            try:
                await self._app(scope, recorder.receive, recorder.send)
            finally:
                _current.reset(token)
                recorder.close()


class _Recorder:
    """A wrapper of ``receive`` and ``send`` that records one request and its answer."""

    def __init__(self, entry: Entry, receive: Receive, send: Send) -> None:
        self.noted: set[str] = set()
        self._entry = entry
        self._receive = receive
        self._send = send
        self._request = Start()
        self._response = Start()
        self._started = time.perf_counter()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._request.add(message.get("body", b""))
            if not message.get("more_body", False):
                self._entry.request_start = self._request
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if self.noted:
                headers.append((UNKNOWNS_HEADER, ", ".join(sorted(self.noted)).encode()))
            if self._entry.faults:
                headers.append((FAULTS_HEADER, ", ".join(self._entry.faults).encode()))
            message = {**message, "headers": headers}
            self._entry.status = message["status"]
            self._entry.response_head = headers
        elif message["type"] == "http.response.body":
            self._response.add(message.get("body", b""))
            if not message.get("more_body", False):
                self.close()  # before the caller has the answer, so that it finds a complete entry
        await self._send(message)

    def close(self) -> None:
        """Finish the entry once: at the end of the answer, or when no answer will follow."""
        if self._entry.duration_ms is not None:
            return
        self._entry.duration_ms = round((time.perf_counter() - self._started) * 1000, 3)
        self._entry.response_start = self._response
        self._entry.unknowns = sorted(self.noted)
        entry = self._entry
        if not _log.isEnabledFor(logging.INFO):
            return
        path = entry.url.partition("://")[2].partition("/")[2]
        asked = (printable(entry.method), printable(path), entry.status, entry.duration_ms)
        _log.handle(  # not info(), because its search for the caller costs as much as all the rest
            _log.makeRecord(_log.name, logging.INFO, __file__, 0, "%s /%s %s, %.1f ms", asked, None)
        )


class Start:
    """The start of a body, and how much of it was cut off."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._room = BODY_LIMIT
        self._cut = 0

    def add(self, chunk: bytes) -> None:
        """Add the next piece of the body."""
        if self._room:
            self._kept.append(chunk[: self._room])
        self._cut += max(0, len(chunk) - self._room)
        self._room = max(0, self._room - len(chunk))

    def text(self) -> str:
        """Return the start as text, without tokens."""
        text = without_tokens(b"".join(self._kept).decode("utf-8", "replace"))
        return f"{text}... ({self._cut} more bytes)" if self._cut else text


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]
    return [(name, redact(name, value)) for name, value in pairs]


def _query(scope: Scope) -> str:
    """Return the query of a request without tokens, in any encoding."""
    query: str = scope["query_string"].decode("latin-1")
    return _hidden(query, _tells_a_secret)


def _tells_a_secret(name: str) -> bool:
    """Return whether the name of a query parameter says that the value is a secret."""
    return name.lower().replace("_", "") not in _PLACES and _IN_QUERY.fullmatch(name) is not None


def _hidden(query: str, is_secret: Callable[[str], bool]) -> str:
    if not query:
        return query
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(is_secret(name) for name, _ in pairs):
        return query
    hidden = [(name, REDACTED if is_secret(name) else value) for name, value in pairs]
    return urlencode(hidden, safe="*")


def without_tokens(text: str) -> str:
    """Return text without the tokens of session Endpoints and the keys and secrets of actions."""
    text = _TOKEN.sub(rf"\1{REDACTED}", text)
    text = _SECRET_FIELD.sub(rf'\1"{REDACTED}"', text)
    for variable in _VARIABLES:
        text = variable.sub(rf'\1"{REDACTED}"\2', text)
    return _API_KEYS.sub(lambda keys: _API_KEY.sub(rf'\1"{REDACTED}"', keys[0]), text)


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
