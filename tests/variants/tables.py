"""The legal variants of each surface."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from doublecheck.target.facts import Surface
from tests.mutants.agents import APPS, ARTIFACTS, CREATE, DELETE, LIST, NAMED, READ, RUN, STREAM
from tests.mutants.changes import OfValue, always, at, drop, put, where
from tests.mutants.protocols import CARD, schemas, tasks, tools
from tests.mutants.sandbox import data, envelope, failed, inner, outputs
from tests.mutants.wire import (
    Answer,
    Change,
    Request,
    answers,
    calls,
    events,
    in_place,
    raw_events,
    text_of,
)


@dataclass(frozen=True)
class Variant:
    """A platform that answers in another form."""

    surface: Surface
    name: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return f"{self.surface}-{self.name}"


# ---- forms of JSON and of streams


def written(form: Callable[[Any], str]) -> Callable[[Answer, Request], None]:
    """Serialize JSON differently."""

    def in_place(answer: Answer, _request: Request) -> None:
        if answer.json is not None:
            answer.body = form(answer.json).encode()

    return in_place


def backwards(document: Any) -> Any:
    """Reverse the order of fields."""
    if isinstance(document, list):
        return [backwards(item) for item in document]
    if isinstance(document, dict):
        return {name: backwards(document[name]) for name in reversed(document)}
    return document


def typed(answer: Answer, _request: Request) -> None:
    """Send the content type of JSON in capitals, with a charset."""
    if answer.headers.get("content-type") == "application/json":
        answer.headers["content-type"] = "Application/JSON; Charset=UTF-8"


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


JSON = {
    "json_over_several_lines": written(lambda document: f"\r\n {json.dumps(document, indent=2)} "),
    "json_escaped": written(lambda document: json.dumps(document, separators=(",", ":"))),
    "json_unescaped": written(lambda document: json.dumps(document, ensure_ascii=False)),
    "json_keys_backwards": written(lambda document: json.dumps(backwards(document))),
    "further_headers": lambda answer, _: answer.headers.update({"x-trace": "1", "vary": "Origin"}),
}
STREAMS: Mapping[str, Callable[[bytes], Any]] = {
    "events_with_ids_and_comments": lambda raw: b": alive\nid: 7\nretry: 3000\n" + raw,
    "comments_between_events": lambda raw: [b": ping\n\n", raw, b":\n\n"],
    "lines_that_end_with_crlf": lambda raw: raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "data_without_a_space": closer,
    "bytes_one_by_one": lambda raw: (
        [raw[i : i + 1] for i in range(len(raw))] if len(raw) < 5000 else [raw]
    ),
}


def of_json(route: str, *names: str) -> dict[str, Change]:
    """Return variants of JSON in all forms, or in these."""
    return {name: in_place(route, JSON[name]) for name in names or JSON}


def of_streams(route: str, *names: str) -> dict[str, Change]:
    """Return variants of streams in all forms, or in these."""
    return {name: raw_events(route, STREAMS[name]) for name in names or STREAMS}


def status(route: str, of: int, new: int) -> Change:
    """Answer with another status."""

    def change_status(answer: Answer, _request: Request) -> None:
        if answer.status == of:
            answer.status = new
            answer.body = b"" if new == 204 else answer.body

    return in_place(route, change_status)


def as_text(route: str, text: Callable[[Any], str]) -> Change:
    """Answer with plain text."""

    def change_type(answer: Answer, _request: Request) -> None:
        answer.body, answer.headers["content-type"] = text(answer.json).encode(), "text/plain"

    return in_place(route, change_type)


def plain_refusal(answer: Answer, _request: Request) -> None:
    """Refuse without the envelope."""
    if answer.status >= 400:
        error = (answer.json or {}).get("ResponseMetadata", {}).get("Error", {})
        answer.set(answer.status, {"error": error.get("Message", "")})


def split(some: list[Any]) -> list[Any]:
    """Report printed text in two stream outputs."""
    changed = []
    for output in some:
        text = output["text"]
        if output["output_type"] == "stream" and len(text) > 1:
            half = len(text) // 2
            changed += [{**output, "text": text[:half]}, {**output, "text": text[half:]}]
        else:
            changed.append(output)
    return changed


def of_list(change: OfValue) -> OfValue:
    """Change lists only."""
    return where(lambda value: isinstance(value, list), change)


def of_text(change: OfValue) -> OfValue:
    """Change texts only."""
    return where(lambda value: isinstance(value, str), change)


INVOKE, CONTROL, MCP, A2A = "POST /invoke", "POST /", "* /mcp*", "POST /"
IS_VALUE, AS_DISPLAY = (
    (lambda output: output["output_type"] == "execute_result"),
    put(output_type="display_data", execution_count=None),
)
MCP_VARIANTS: dict[str, Any] = {
    "tools_in_another_order": tools(lambda some: some[::-1]),
    "tools_with_annotations": tools(at("*", put(title="T", annotations={"readOnlyHint": True}))),
    "schemas_with_titles": schemas(put(title="Arguments")),
    "schemas_that_refuse_more": schemas(put(additionalProperties=False)),
    "results_with_metadata": calls("tools/call", put(_meta={"trace": "1"})),
    "a_refused_key_is_403": status(MCP, 401, 403),
}
TABLE: dict[Surface, dict[str, Any]] = {
    "application": {
        **of_json("* /invoke"),
        **of_streams(INVOKE),
        "content_type_in_capitals": in_place(INVOKE, typed),
        "result_in_an_object": answers(INVOKE, of_text(lambda text: {"result": text})),
        "output_in_an_object": answers(INVOKE, of_text(lambda text: {"output": text})),
        "probes_with_further_fields": [
            answers(f"GET /{name}", put(further={"a": [None]}))
            for name in ("ping", "health", "readiness", "liveness")
        ],
        "ping_is_text": as_text("GET /ping", lambda document: str(document["status"])),
        "health_is_text": as_text("GET /health", lambda _: "ok\n"),
        "health_is_up": answers("GET /health", always({"status": "UP", "checks": []})),
        "readiness_is_true": answers("GET /readiness", always({"ready": True})),
        "broken_json_is_422": status(INVOKE, 400, 422),
        "an_exception_is_502": status(INVOKE, 500, 502),
        "stream_errors_have_further_fields": events(
            INVOKE, where(lambda value: "error" in value, put(code=7))
        ),
        "stream_errors_have_a_type": raw_events(
            INVOKE, lambda raw: b"event: error\n" + raw if b'"error"' in raw else raw
        ),
    },
    "api_server": {
        **of_json("* /*"),
        **of_streams(STREAM),
        "several_data_lines": raw_events(STREAM, several_lines),
        "content_type_in_capitals": in_place("* *", typed),
        "applications_in_an_object": answers(APPS, lambda names: {"apps": names}),
        "applications_are_objects": answers(APPS, at("*", lambda name: {"name": name})),
        "applications_in_another_order": answers(APPS, lambda names: names[::-1]),
        "sessions_in_an_object": answers(LIST, lambda some: {"sessions": some}),
        "sessions_in_another_order": answers(LIST, lambda some: some[::-1]),
        "sessions_listed_with_id_alone": answers(LIST, at("*", lambda item: {"id": item["id"]})),
        "sessions_without_app_and_user": [
            answers(CREATE, drop("appName", "userId", "state")),
            answers(READ, drop("appName", "userId", "state")),
        ],
        "a_session_is_created_with_201": [status(CREATE, 200, 201), status(NAMED, 200, 201)],
        "deletion_is_204": status(DELETE, 200, 204),
        "deletion_tells_a_result": answers(DELETE, always({"deleted": True})),
        "an_unknown_session_is_410": status(READ, 404, 410),
        "artifacts_in_an_object": answers(ARTIFACTS, lambda some: {"artifacts": some}),
        "events_in_an_object": answers(RUN, of_list(lambda some: {"events": some})),
        "events_with_further_fields": answers(RUN, of_list(at("*", put(model={"name": "m"})))),
        "events_with_nulls": answers(RUN, of_list(at("*", put(errorCode=None)))),
        "streamed_events_with_further_fields": events(STREAM, put(model={"name": "m"})),
        "a_missing_field_is_400": status("POST /run*", 422, 400),
        "version_is_text": as_text("GET /version", lambda _: "1.2.3"),
        "version_is_a_string": answers("GET /version", always("1.2.3")),
    },
    "control_plane": {
        **of_json(CONTROL),
        "endpoints_that_are_not_empty": envelope("Result", put(Endpoint="https://x.example")),
        "an_envelope_with_further_fields": envelope("ResponseMetadata", put(Zone="a")),
        "other_error_codes": answers(CONTROL, at("ResponseMetadata.Error", put(CodeN=1, Data={}))),
        "refusals_without_an_envelope": in_place(CONTROL, plain_refusal),
        "an_unknown_tool_is_400": status(CONTROL, 404, 400),
        "a_wrong_signature_is_403": status(CONTROL, 401, 403),
    },
    "sandbox": {
        "stdout_in_two_streams": outputs(split),
        "values_as_display_data": outputs(at("*", where(IS_VALUE, AS_DISPLAY))),
        "values_without_a_count": outputs(at("*", put(execution_count=None))),
        "traceback_as_one_text": outputs(at("*.traceback", of_list("\n".join))),
        "outputs_with_further_keys": outputs(at("*", put(time=1))),
        "another_message": inner(put(message="", further=None)),
        "another_kernel_name": data(put(kernel_name="python-3.12-data")),
        "failed_is_the_status": data(where(failed, put(status="failed"))),
        "a_result_of_several_lines": envelope(
            "Result.Result", lambda text: json.dumps(json.loads(text), indent=4)
        ),
    },
    "mcp": {**of_json(MCP), **of_streams(MCP), **MCP_VARIANTS},
    "services": {**of_json(MCP, "json_keys_backwards"), **MCP_VARIANTS},
    "a2a": {
        **of_json(A2A),
        **of_streams(A2A),
        "several_data_lines": raw_events(A2A, several_lines),
        "card_over_several_lines": in_place(CARD, JSON["json_over_several_lines"]),
        "a_card_with_further_fields": answers(
            CARD, put(provider={"organization": "o", "url": "https://o.example"})
        ),
        "tasks_with_metadata": tasks(("SendMessage", "GetTask"), put(metadata={"x": 1})),
        "named_artifacts": tasks(
            ("SendMessage", "GetTask"), at("artifacts.*", put(name="result", metadata={}))
        ),
        "other_texts_of_errors": answers(A2A, at("error", put(message="No.", data=[]))),
    },
}
VARIANTS = tuple(
    Variant(surface, name, (change,) if isinstance(change, Change) else tuple(change))
    for surface, variants in TABLE.items()
    for name, change in variants.items()
)
