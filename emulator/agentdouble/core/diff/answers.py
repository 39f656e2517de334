"""Compare two answers to one call: status, content type, body or events, and how they ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from agentdouble.core import event_stream
from agentdouble.core.diff.documents import Documents, Mismatch
from agentdouble.core.diff.fields import Fields
from agentdouble.core.diff.json_texts import loaded
from agentdouble.core.diff.pairs import Pairs

_SESSION = "mcp-session-id"
_CUT = "longer than the compared limit"


class ComparedAnswer(Protocol):
    """An answer. ``status`` is None if there is none; the names of ``headers`` are in lower case.

    ``error`` says why the answer broke off, if it did, and ``body_cut`` whether the kept body lacks
    its end.
    """

    @property
    def status(self) -> int | None: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...
    @property
    def error(self) -> str | None: ...
    @property
    def body_cut(self) -> bool: ...


def mismatches(
    first: ComparedAnswer, second: ComparedAnswer, pairs: Pairs, operation: str = ""
) -> tuple[Mismatch, ...]:
    """Return where two answers to an operation differ. Ids at the same place are matched."""
    return tuple(_mismatches(first, second, pairs, Documents(pairs, Fields(operation))))


def _mismatches(
    first: ComparedAnswer, second: ComparedAnswer, pairs: Pairs, documents: Documents
) -> Iterator[Mismatch]:
    if first.status != second.status:  # the bodies of different statuses are not comparable
        yield Mismatch("value", "status", first.status or "no answer", second.status or "no answer")
        return
    if first.status is None:
        return
    kinds = _media_type(first), _media_type(second)
    if kinds[0] != kinds[1] and (first.body or second.body):
        yield Mismatch("value", "content-type", *kinds)
    sessions = [answer.headers.get(_SESSION, "") for answer in (first, second)]
    if all(sessions) and not pairs.link(sessions[0], sessions[1], "MCP session"):
        yield documents.mismatch("value", _SESSION, *sessions)
    if kinds == (event_stream.MEDIA_TYPE, event_stream.MEDIA_TYPE):
        events, second_events = _events(first), _events(second)
        for index, (event, second_event) in enumerate(zip(events, second_events, strict=False)):
            yield from documents.compare(event, second_event, f"events[{index}]$")
        yield from documents.surplus(events, second_events, "events")
    else:
        yield from documents.compare(_document(first), _document(second))
    if bool(first.error) != bool(second.error):
        yield Mismatch("value", "end", first.error or "whole", second.error or "whole")
    if first.body_cut or second.body_cut:
        ends = [_CUT if answer.body_cut else "whole" for answer in (first, second)]
        yield Mismatch("value", "end", *ends)


def _media_type(answer: ComparedAnswer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def _document(answer: ComparedAnswer) -> Any:
    """Return the body as JSON, or as text; None if it is empty."""
    body = answer.body
    try:
        text = body.decode()
    except UnicodeDecodeError:  # replacement characters must not make two different images equal
        return f"{len(body)} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}"
    try:
        return loaded(text) if text else None
    except ValueError:
        return text


def _events(answer: ComparedAnswer) -> list[Any]:
    """Return the data of the events, as JSON if possible. Consecutive pieces of text are joined.

    Where a text is split into pieces has no meaning.
    """
    events: list[Any] = []
    for (kind, _), group in groupby(
        map(_piece, event_stream.data_of(answer.body)), key=itemgetter(0, 1)
    ):
        values = [value for _, _, value in group]
        if kind == "increments":
            parts = [value["content"]["parts"][0] for value in values]
            parts[0]["text"] = "".join(str(part["text"]) for part in parts)
            values = values[:1]
        events += [{kind: "".join(values)}] if kind in ("text", "JSON string") else values
    return events


def _piece(data: str) -> tuple[str, Any, Any]:
    """Return the kind, the author and the value of an event.

    The kind is "text", "JSON string", "increments" or "event".
    """
    try:
        event = loaded(data)
    except ValueError:
        return "text", None, data
    if isinstance(event, str):
        return "JSON string", None, event
    if isinstance(event, dict) and event.get("partial"):
        content = event.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if isinstance(parts, list) and len(parts) == 1 and set(parts[0]) == {"text"}:
            return "increments", event.get("author"), event
    if isinstance(event, (dict, list)):
        return "event", None, event
    return "text", None, data
