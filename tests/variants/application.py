"""The variants of applications."""

from __future__ import annotations

import itertools
import json
from typing import Any

from tests.mutants.changes import always, put, where
from tests.mutants.wire import (
    Answer,
    Request,
    answers,
    data_of,
    event_of,
    events,
    in_place,
    raw_events,
)
from tests.mutants.wire import text_of as data_text
from tests.variants.forms import (
    IN_CAPITALS,
    OF_A_VENDOR,
    as_text,
    of_json,
    of_streams,
    of_text,
    status,
    succeeding,
)

INVOKE = "POST /invoke"
numbers = itertools.count()


def in_an_object(raw: bytes) -> bytes:
    """Send a string of a stream in an object."""
    return raw if is_failure(raw) else event_of({"delta": data_text(raw)})


def beside_an_index(raw: bytes) -> bytes:
    """Send a string of a stream beside another value."""
    wrapped = {"type": "text", "index": next(numbers), "text": data_text(raw)}
    return raw if is_failure(raw) else event_of(wrapped)


def is_failure(raw: bytes) -> bool:
    """Return whether an event of a stream reports a failure."""
    document = data_of(raw)
    return isinstance(document, dict) and "error_type" in document


def refused_with_text(answer: Answer, _request: Request) -> None:
    """Refuse with text."""
    if answer.status == 400:
        answer.body, answer.headers["content-type"] = b"Not JSON.", "text/plain"


APPLICATION: dict[str, Any] = {
    **of_json("* /invoke"),
    **of_streams(INVOKE),
    "content_type_in_capitals": in_place(INVOKE, IN_CAPITALS),
    "content_type_of_a_vendor": in_place(INVOKE, OF_A_VENDOR),
    "an_invocation_is_201": status(INVOKE, 200, 201),
    "result_in_an_object": answers(INVOKE, of_text(lambda text: {"result": text})),
    "output_in_an_object": answers(INVOKE, of_text(lambda text: {"output": text})),
    "result_in_a_list": answers(INVOKE, of_text(lambda text: [text])),
    "result_beside_a_status": answers(
        INVOKE, of_text(lambda text: {"status": "success", "response": text})
    ),
    "result_beside_a_code": answers(
        INVOKE,
        of_text(
            lambda text: {"code": "0", "message": "", "data": text, "trace": f"{next(numbers)}"}
        ),
    ),
    "result_in_nested_objects": answers(
        INVOKE, of_text(lambda text: {"data": {"output": {"text": text}}, "usage": {"tokens": 3}})
    ),
    "result_as_a_message": answers(
        INVOKE,
        of_text(lambda text: {"choices": [{"message": {"role": "assistant", "content": text}}]}),
    ),
    "result_beside_its_request": answers(
        INVOKE,
        lambda text, request: (
            {"input": request.json, "output": text} if isinstance(text, str) else text
        ),
    ),
    "result_beside_its_request_as_text": answers(
        INVOKE,
        lambda text, request: (
            {"input": json.dumps(request.json), "output": text} if isinstance(text, str) else text
        ),
    ),
    "strings_in_objects": raw_events(INVOKE, in_an_object),
    "strings_beside_an_index": raw_events(INVOKE, beside_an_index),
    "probes_with_further_fields": [
        answers(f"GET /{name}", put(further={"a": [None]}))
        for name in ("ping", "health", "readiness", "liveness")
    ],
    "ping_is_text": as_text("GET /ping", lambda document: str(document["status"])),
    "ping_is_text_of_a_page": as_text(
        "GET /ping", lambda document: str(document["status"]), "text/html; charset=utf-8"
    ),
    "ping_is_text_with_a_line_end": as_text("GET /ping", lambda it: f"{it['status']}\r\n"),
    "ping_is_a_string": answers("GET *ping", lambda it: it["status"]),
    "ping_is_a_message": answers("GET *ping", lambda it: {"message": it["status"], "error": None}),
    "ping_beside_other_texts": answers(
        "GET *ping",
        lambda it: {"code": "0", "data": {"text": it["status"]}, "at": f"{next(numbers)}"},
    ),
    "health_is_text": as_text("GET /health", lambda _: "ok\n"),
    "health_is_up": answers("GET /health", always({"status": "UP", "checks": []})),
    "health_counts_errors": answers("GET *health", always({"healthy": True, "errors": 0})),
    "liveness_is_a_number": answers("GET *liveness", lambda _: {"uptime_s": next(numbers) + 0.5}),
    "readiness_is_true": answers("GET /readiness", always({"ready": True})),
    "readiness_is_a_list": answers("GET *readiness", always([{"name": "db", "status": "pass"}])),
    "broken_json_is_422": status(INVOKE, 400, 422),
    "broken_json_is_415": status(INVOKE, 400, 415),
    "broken_json_is_refused_with_text": in_place(INVOKE, refused_with_text),
    "an_exception_is_502": status(INVOKE, 500, 502),
    "an_exception_is_422": status(INVOKE, 500, 422),
    "an_exception_is_400": status(INVOKE, 500, 400),
    "an_exception_is_no_success": succeeding(INVOKE, 500, {"success": False, "message": "No."}),
    "an_exception_has_a_code": succeeding(INVOKE, 500, {"code": 500, "message": "No."}),
    "stream_errors_have_further_fields": events(
        INVOKE, where(lambda value: "error" in value, put(code=7))
    ),
    "stream_errors_have_a_type": raw_events(
        INVOKE, lambda raw: b"event: error\n" + raw if b'"error"' in raw else raw
    ),
}
