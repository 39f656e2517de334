"""The journal of requests and answers, with their unknowns, unread fields, faults and failures.

Secrets are hidden, and bodies are cut at 64 KiB. ``middleware`` makes an entry of each request;
functions here note in it what happens to the request.
"""

from __future__ import annotations

import datetime as dt
import itertools
import secrets
import shlex
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.types import Scope

from agentdouble.core import redaction, request_cause
from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.journal import request_subjects

BODY_LIMIT = 64 * 1024
UNSEEN = "agentdouble.unseen"  # in the scope of a request that gets no entry, and no fault
UNREAD_LIMIT = 100
UNREAD_LENGTH = 200
STEPS_LIMIT = 100  # a slow stream pauses at each piece
_NOT_IN_CURL = frozenset(
    {"host", "content-length", "connection", "accept-encoding", request_cause.HEADER}
)


RawHeaders = Sequence[tuple[bytes, bytes]]


@dataclass
class Step:
    """A step of a request, as a context; its times are those of ``time.perf_counter``."""

    name: str
    started: float
    ended: float | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_raised: object) -> None:
        self.ended = time.perf_counter()


@dataclass
class Entry:
    """One request and its answer; ``duration_ms`` is in milliseconds.

    ``started`` is a time of ``time.perf_counter``, because the platform's clock can be moved and
    stopped. Headers and bodies are converted to text, without secrets, when they are read, because
    most never are.
    """

    id: int
    at: dt.datetime
    method: str
    url: str
    request_head: RawHeaders = field(repr=False)
    started: float = field(default=0.0, repr=False)
    request_start: Start | None = field(default=None, repr=False)
    caused_by: int | None = None
    session: str | None = None
    node: str | None = None
    status: int | None = None
    response_head: RawHeaders = field(default=(), repr=False)
    response_start: Start | None = field(default=None, repr=False)
    duration_ms: float | None = None
    received_bytes: int = 0
    sent_bytes: int = 0
    unknowns: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set, repr=False)

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        """The request's headers, with names in lower case."""
        headers = _headers(self.request_head)
        return [
            (name, redaction.REDACTED if name in self.secrets else value) for name, value in headers
        ]

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
        """The answer's body as far as it has been sent."""
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
        short = {
            "id": self.id,
            "at": self.at.isoformat(),
            "method": self.method,
            "url": self.url,
            "session": self.session,
            **({} if self.node is None else {"node": self.node}),
            "caused_by": self.caused_by,
            **request_subjects.described(self.url, dict(self.request_headers), self.request_body),
            "status": self.status,
            "started_ms": round(self.started * 1000, 3),
            "duration_ms": self.duration_ms,
            "steps": [self._shown(step) for step in self.steps],
            "received_bytes": self.received_bytes,
            "sent_bytes": self.sent_bytes,
            "unknowns": self.unknowns,
            "unread": self.unread,
            "faults": self.faults,
            "failures": self.failures,
        }
        if not bodies:
            return short
        return {
            **short,
            "request_headers": dict(self.request_headers),
            "request_body": self.request_body,
            "response_headers": dict(self.response_headers),
            "response_body": self.response_body,
            "curl": self.curl(),
        }

    def _shown(self, step: Step) -> dict[str, Any]:
        took = None if step.ended is None else round((step.ended - step.started) * 1000, 3)
        after = round((step.started - self.started) * 1000, 3)
        return {"name": step.name, "after_ms": after, "duration_ms": took}


current_entry: ContextVar[Entry | None] = ContextVar("agentdouble_journal_entry", default=None)


def note_secret(name: str) -> None:
    """Hide the header and the query parameter of this name in the current request."""
    entry = current_entry.get()
    if entry is not None:
        entry.secrets.add(name.lower())
        address, mark, query = entry.url.partition("?")
        hidden = name.lower()
        entry.url = (
            f"{address}{mark}{redaction.hide_in_query(query, lambda key: key.lower() == hidden)}"
        )


def note_session(session_id: str) -> None:
    """Note the session instance that the current request uses."""
    entry = current_entry.get()
    if entry is not None:
        entry.session = session_id


def note_node(name: str) -> None:
    """Note the node that the current request uses."""
    entry = current_entry.get()
    if entry is not None:
        entry.node = name


def note_step(name: str) -> Step:
    """Note that the current request takes a step of this name during the context that it returns.

    Only the first ``STEPS_LIMIT`` are kept.
    """
    entry = current_entry.get()
    step = Step(name, time.perf_counter())
    if entry is not None and len(entry.steps) < STEPS_LIMIT:
        entry.steps.append(step)
    return step


def note_unread(fields: Iterable[str]) -> None:
    """Note fields of the current request that nothing reads, by their paths (``Tags.0.Key``).

    Only the first ``UNREAD_LIMIT`` are kept.
    """
    entry = current_entry.get()
    if entry is None:
        return
    free = max(0, UNREAD_LIMIT - len(entry.unread))
    entry.unread += [encodable(name[:UNREAD_LENGTH]) for name in itertools.islice(fields, free)]


def note_fault(fault: str) -> None:
    """Note a fault that happened to the current request."""
    entry = current_entry.get()
    if entry is not None:
        entry.faults.append(fault)


def note_failure(reference: str) -> None:
    """Note a failure of the double in the current request's entry, by its reference in the log."""
    entry = current_entry.get()
    if entry is not None and reference not in entry.failures:
        entry.failures.append(reference)


def encodable(text: str) -> str:
    """Return text that can be encoded, because JSON can contain a lone surrogate."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Journal:
    """The last ``size`` requests, oldest first."""

    def __init__(self, size: int, clock: Clock, events: EventBus | None = None) -> None:
        self.events = events or EventBus()
        self.name = secrets.token_hex(8)
        self._entries: deque[Entry] = deque(maxlen=size)
        self._ids = itertools.count(1)
        self._clock = clock

    def entries(self) -> Sequence[Entry]:
        """Return the entries that are kept, oldest first."""
        return tuple(self._entries)

    def find(self, id_: int) -> Entry | None:
        """Return the entry with this id if it is kept, or None."""
        return next((entry for entry in self.entries() if entry.id == id_), None)

    def clear(self) -> None:
        """Remove every entry; the ids continue."""
        self._entries.clear()
        if self.events.watched:
            self.events.publish("journal", "", "cleared", dict)

    def open(self, scope: Scope) -> Entry:
        """Start the entry of a request that has just arrived."""
        headers = scope["headers"]
        host = cause = b""
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == request_cause.RAW_HEADER:
                cause = value
        query = redaction.hide_in_query(scope["query_string"].decode("latin-1"))
        entry = Entry(
            id=next(self._ids),
            at=self._clock.now(),
            method=scope.get("method", "GET"),  # a WebSocket's handshake has none
            url=f"{scope['scheme']}://{host.decode('latin-1')}{redaction.hide_in_path(scope['path'])}{'?' + query if query else ''}",
            request_head=headers,
            started=time.perf_counter(),
            caused_by=self._cause(cause) if cause else None,
        )
        self._entries.append(entry)
        if self.events.watched:
            self.publish(entry, "opened")
        return entry

    def _cause(self, header: bytes) -> int | None:
        """Return the id of the entry that a header names, if it is one of this journal."""
        name, id_ = request_cause.read(header.decode("latin-1")) or ("", 0)
        is_there = bool(self._entries) and self._entries[0].id <= id_ <= self._entries[-1].id
        return id_ if name == self.name and is_there else None

    def publish(self, entry: Entry, happened: str) -> None:
        """Publish that a request was opened or answered."""
        self.events.publish(
            "request", str(entry.id), happened, partial(entry.to_dict, bodies=False)
        )


class Start:
    """The start of a body, and how much of it was cut off."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._room = BODY_LIMIT
        self._cut = 0
        self._shown = (0, "")  # bytes, and their text: to look for secrets takes milliseconds

    def add(self, chunk: bytes) -> None:
        """Add the next piece of the body."""
        if self._room:
            self._kept.append(chunk[: self._room])
        self._cut += max(0, len(chunk) - self._room)
        self._room = max(0, self._room - len(chunk))

    def full_body(self) -> bytes | None:
        """Return the body as it came, or None if some of it was cut off."""
        return None if self._cut else b"".join(self._kept)

    def text(self) -> str:
        """Return the start as text, without secrets."""
        kept = BODY_LIMIT - self._room
        if kept != self._shown[0]:
            text = b"".join(self._kept).decode("utf-8", "replace")
            self._shown = kept, redaction.without_secrets(text)
        text = self._shown[1]
        return f"{text}... ({self._cut} more bytes)" if self._cut else text


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]
    return [(name, redaction.redact(name, value)) for name, value in pairs]
