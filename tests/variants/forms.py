"""Changes of form that the specification leaves open, for the tables of variants."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from tests.mutants.changes import OfValue, where
from tests.mutants.wire import Answer, Change, Request, in_place, raw_events, routed, text_of


def written(form: Callable[[Any], str]) -> Callable[[Answer, Request], None]:
    """Serialize JSON differently."""

    def in_place(answer: Answer, _request: Request) -> None:
        if answer.json is not None:
            answer.body = form(answer.json).encode()

    return in_place


def compressed(answer: Answer, request: Request) -> None:
    """Compress JSON for clients that accept it."""
    if answer.json is not None and "gzip" in request.header("accept-encoding"):
        answer.body, answer.headers["content-encoding"] = gzip.compress(answer.body), "gzip"


def backwards(document: Any) -> Any:
    """Reverse the order of fields."""
    if isinstance(document, list):
        return [backwards(item) for item in document]
    if isinstance(document, dict):
        return {name: backwards(document[name]) for name in reversed(document)}
    return document


def typed(new: str, old: str = "application/json") -> Callable[[Answer, Request], None]:
    """Send another content type instead of this one."""

    def in_place(answer: Answer, _request: Request) -> None:
        if answer.headers.get("content-type", "").startswith(old):
            answer.headers["content-type"] = new

    return in_place


def escaped(document: Any) -> str:
    """Write JSON with every character of a string escaped."""
    if isinstance(document, str):
        units = document.encode("utf-16-be", "surrogatepass").hex()
        return '"' + re.sub("....", r"\\u\g<0>", units) + '"'
    if isinstance(document, list):
        return f"[{','.join(map(escaped, document))}]"
    if isinstance(document, dict):
        fields = (f"{escaped(name)}:{escaped(value)}" for name, value in document.items())
        return f"{{{','.join(fields)}}}"
    return json.dumps(document)


def in_chunks(answer: Answer, _request: Request) -> None:
    """Send an answer in chunks, without its length."""
    if answer.body:
        answer.headers["transfer-encoding"] = "chunked"
        answer.headers.pop("content-length", None)


def headers_in_capitals(answer: Answer, _request: Request) -> None:
    """Begin the words of header names with capitals."""
    headers = {name.title(): value for name, value in answer.headers.items()}
    headers.pop("Content-Length", None)  # is set when the answer is sent
    answer.headers = headers


def with_cookies(answer: Answer, request: Request) -> None:
    """Set a cookie that tells requests apart, such as that of a load balancer."""
    answer.headers["set-cookie"] = f"node={len(request.path)}; Path=/; HttpOnly"


IN_CAPITALS = typed("Application/JSON; Charset=UTF-8")
OF_A_VENDOR = typed("application/vnd.example.v1+json")


def several_lines(raw: bytes) -> bytes:
    """Send the JSON of an event on several lines."""
    try:
        document = json.loads(text_of(raw))
    except ValueError:
        return raw
    some = json.dumps(document, indent=1).splitlines() if isinstance(document, dict) else ()
    return "".join(f"data: {line}\n" for line in some).encode() + b"\n" if some else raw


def closer(raw: bytes) -> bytes:
    """Omit the space after ``data:`` unless the data starts with one."""
    return re.sub(rb"(?m)^data: (?! )", b"data:", raw)


def ended_by(line_end: bytes) -> Callable[[bytes], bytes]:
    """End lines in another way."""
    return lambda raw: raw.replace(b"\r\n", b"\n").replace(b"\n", line_end)


def marked(route: str) -> Change:
    """Begin a stream with a byte order mark."""

    def event(raw: bytes, request: Request) -> list[bytes]:
        mark = b"" if request.state.get("marked") else b"\xef\xbb\xbf"
        request.state["marked"] = True
        return [mark + raw]

    return Change(routed(route), event=event)


def compressed_stream(route: str) -> Change:
    """Compress a stream, event by event."""

    def head(headers: dict[str, str]) -> None:
        headers["content-encoding"] = "gzip"

    def deflate(request: Request) -> Any:
        return request.state.setdefault("deflate", zlib.compressobj(wbits=zlib.MAX_WBITS | 16))

    def event(raw: bytes, request: Request) -> list[bytes]:
        return [deflate(request).compress(raw) + deflate(request).flush(zlib.Z_SYNC_FLUSH)]

    return Change(
        lambda request: routed(route)(request) and "gzip" in request.header("accept-encoding"),
        event=event,
        end=lambda request: [deflate(request).flush()],
        head=head,
    )


def ended_with(route: str, last: bytes) -> Change:
    """Send something that is not an event at the end of a stream."""
    return Change(routed(route), end=lambda _request: [last])


def stream_typed(route: str) -> Change:
    """Send the content type of streams in capitals, with a charset."""
    kind = "Text/Event-Stream; Charset=UTF-8"
    return Change(routed(route), head=lambda headers: headers.update({"content-type": kind}))


JSON = {
    "json_over_several_lines": written(lambda document: f"\r\n {json.dumps(document, indent=2)} "),
    "json_escaped": written(lambda document: json.dumps(document, separators=(",", ":"))),
    "json_unescaped": written(lambda document: json.dumps(document, ensure_ascii=False)),
    "json_keys_backwards": written(lambda document: json.dumps(backwards(document))),
    "json_compressed": compressed,
    "further_headers": lambda answer, _: answer.headers.update({"x-trace": "1", "vary": "Origin"}),
    "json_escaped_throughout": written(escaped),
    "connections_closed": lambda answer, _: answer.headers.update({"connection": "close"}),
    "answers_in_chunks": in_chunks,
    "header_names_in_capitals": headers_in_capitals,
    "cookies": with_cookies,
}
STREAMS: Mapping[str, Callable[[bytes], Any]] = {
    "events_with_ids_and_comments": lambda raw: b": alive\nid: 7\nretry: 3000\n" + raw,
    "comments_between_events": lambda raw: [b": ping\n\n", raw, b":\n\n"],
    "events_without_data_between": lambda raw: [b"event: ping\n\n", raw, b"retry: 3000\n\n"],
    "lines_of_unknown_fields": lambda raw: b"trace: 1\nunknown\n" + raw,
    "lines_that_end_with_crlf": ended_by(b"\r\n"),
    "lines_that_end_with_cr": ended_by(b"\r"),
    "data_without_a_space": closer,
    "events_with_the_default_name": lambda raw: b"event: message\n" + raw,
    "ids_and_times_without_values": lambda raw: b"id\nretry\n" + raw,
    "fields_after_the_data": lambda raw: raw[:-1] + b"id: 9\nretry: 10\n\n",
    "comments_between_lines": lambda raw: raw.replace(b"\ndata:", b"\n: a comment\ndata:"),
    "empty_lines_between": lambda raw: raw + b"\n\n",
    "bytes_one_by_one": lambda raw: (
        [raw[i : i + 1] for i in range(len(raw))] if len(raw) < 5000 else [raw]
    ),
}


def of_json(route: str, *names: str) -> dict[str, Change]:
    """Return variants of JSON in all forms, or in these."""
    return {name: in_place(route, JSON[name]) for name in names or JSON}


def of_streams(route: str) -> dict[str, Change]:
    """Return variants of streams in all forms."""
    return {
        **{name: raw_events(route, change) for name, change in STREAMS.items()},
        "a_byte_order_mark": marked(route),
        "a_compressed_stream": compressed_stream(route),
        "a_comment_at_the_end": ended_with(route, b": bye\n\n"),
        "stream_type_in_capitals": stream_typed(route),
    }


def status(route: str, of: int, new: int) -> Change:
    """Answer with another status."""

    def change_status(answer: Answer, _request: Request) -> None:
        if answer.status == of:
            answer.status = new
            answer.body = b"" if new == 204 else answer.body

    return in_place(route, change_status)


def with_status(route: str, new: int) -> Change:
    """Send JSON-RPC errors with an HTTP status."""

    def change_answer(answer: Answer, _request: Request) -> None:
        if isinstance(answer.json, dict) and "error" in answer.json:
            answer.status = new

    return in_place(route, change_answer)


def as_text(route: str, text: Callable[[Any], str], kind: str = "text/plain") -> Change:
    """Answer with text."""

    def change_type(answer: Answer, _request: Request) -> None:
        answer.body, answer.headers["content-type"] = text(answer.json).encode(), kind

    return in_place(route, change_type)


def succeeding(route: str, of: int, document: Any) -> Change:
    """Answer with 200 and JSON instead of a status."""

    def change_answer(answer: Answer, _request: Request) -> None:
        if answer.status == of:
            answer.set(200, document)

    return in_place(route, change_answer)


def of_list(change: OfValue) -> OfValue:
    """Change lists only."""
    return where(lambda value: isinstance(value, list), change)


def of_text(change: Callable[..., Any]) -> Callable[[Any, Request], Any]:
    """Change texts only."""
    return lambda value, _request: change(value) if isinstance(value, str) else value


def nested(change: OfValue) -> OfValue:
    """Change an object in JSON, and all objects within."""

    def deep(value: Any) -> Any:
        if isinstance(value, list):
            return [deep(item) for item in value]
        if isinstance(value, dict):
            return change({name: deep(item) for name, item in value.items()})
        return value

    return deep
