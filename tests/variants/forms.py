"""Other forms of one meaning: of JSON, of headers, of streams, of lists and of texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.mutants.wire import Answer, Request

Body = Callable[[Any], bytes]


def written(as_bytes: Body) -> Callable[[Answer, Request], None]:
    """Write the JSON of an answer in another way."""

    def change(answer: Answer, _request: Request) -> None:
        try:
            document = json.loads(answer.body)
        except ValueError:
            return
        answer.body = as_bytes(document)

    return change


def indented(document: Any) -> bytes:
    """Write JSON over several lines, with CR LF and white space around it."""
    return ("\r\n " + json.dumps(document, indent=2) + "\r\n").replace("\n", "\r\n").encode()


def escaped(document: Any) -> bytes:
    """Escape everything that is not ASCII."""
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()


def unescaped(document: Any) -> bytes:
    """Escape nothing that need not be."""
    return json.dumps(document, ensure_ascii=False).encode()


def reversed_keys(document: Any) -> bytes:
    """Write the fields of each object in the opposite order."""
    return json.dumps(deep(document, lambda one: dict(reversed(one.items())))).encode()


def deep(document: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Change each object of a document, the inner ones first."""
    if isinstance(document, dict):
        return change({name: deep(value, change) for name, value in document.items()})
    if isinstance(document, list):
        return [deep(one, change) for one in document]
    return document


def headers(**changed: str | None) -> Callable[[Answer, Request], None]:
    """Set headers of an answer, or leave them out."""

    def change(answer: Answer, _request: Request) -> None:
        for name, value in changed.items():
            key = name.replace("_", "-")
            answer.headers.pop(key, None)
            if value is not None:
                answer.headers[key] = value

    return change


def status(new: int, *, of: int | None = None) -> Callable[[Answer, Request], None]:
    """Answer with another status, where the status is the one in ``of``."""

    def change(answer: Answer, _request: Request) -> None:
        if of in (None, answer.status):
            answer.status = new
            if new == 204:
                answer.body = b""

    return change


def lines(raw: bytes) -> list[str]:
    """Return the lines of an event of a stream."""
    return raw.decode().rstrip("\r\n").split("\n")


def event(*some: str, end: str = "\n") -> bytes:
    """Return an event of these lines."""
    return (end.join(some) + end + end).encode()


def with_fields(raw: bytes) -> bytes:
    """Give an event a type, an id, a time to reconnect and a comment."""
    return event(": keep-alive", "id: 7", "retry: 3000", *lines(raw))


def after_comment(raw: bytes) -> list[bytes]:
    """Send comments between events."""
    return [b": ping\n\n", raw, b":\n\n"]


def comment_after_id(raw: bytes) -> list[bytes]:
    """Send a comment after each event, which has an id."""
    return [b"id: 7\n" + raw, b": ping\n\n"]


def with_crlf(raw: bytes) -> bytes:
    """End lines by CR LF."""
    return event(*lines(raw), end="\r\n")


def without_space(raw: bytes) -> bytes:
    """Leave the space behind the colon out, where the data does not begin with one."""
    kept = [
        "data:" + one[6:] if one.startswith("data: ") and one[6:7] != " " else one
        for one in lines(raw)
    ]
    return event(*kept)


def in_pieces(raw: bytes) -> list[bytes]:
    """Send each byte by itself."""
    return [raw[at : at + 1] for at in range(len(raw))] if len(raw) < 5000 else [raw]


def over_several_lines(raw: bytes) -> bytes:
    """Write the JSON of an event over several ``data:`` lines."""
    data = "\n".join(one[5:].strip() for one in lines(raw) if one.startswith("data:"))
    try:
        document = json.loads(data)
    except ValueError:
        return raw
    if not isinstance(document, dict):
        return raw
    return event(*(f"data: {line}" for line in json.dumps(document, indent=1).splitlines()))
