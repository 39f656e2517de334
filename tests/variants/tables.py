"""The legal variants of each surface."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from doublecheck.target.surfaces import Surface
from tests.mutants import lossy, wire
from tests.mutants.api_changes import has, is_reply, text_of, with_parts
from tests.mutants.lossy import OfValue
from tests.mutants.wire import Answer, Request
from tests.variants import Variant, forms

APPS = "/apps/{app}/users/{user}/sessions"
ANY = "* *"
_JSON_FORMS = {
    "json_over_several_lines": forms.indented,
    "json_escaped": forms.escaped,
    "json_unescaped": forms.unescaped,
    "json_keys_reversed": forms.reversed_keys,
}
_HEADERS = {
    "content_type_in_capitals_with_charset": forms.headers(
        content_type="Application/JSON; Charset=UTF-8"
    ),
    "further_headers": forms.headers(x_trace_id="1", cache_control="no-store", vary="Origin"),
}
_STREAMS = {
    "events_with_ids_and_comments": forms.with_fields,
    "comments_between_events": forms.after_comment,
    "comments_after_ids": forms.comment_after_id,
    "lines_that_end_with_crlf": forms.with_crlf,
    "data_without_a_space": forms.without_space,
    "bytes_one_by_one": forms.in_pieces,
}


def _of_json(surface: Surface, route: str, of: str = "") -> list[Variant]:
    """Return what any JSON answer may look like."""
    written = [
        Variant(f"{of}{name}", surface, wire.answered(route, forms.written(form)))
        for name, form in _JSON_FORMS.items()
    ]
    return [
        *written,
        Variant(f"{of}further_headers", surface, wire.answered(route, _HEADERS["further_headers"])),
    ]


def _of_streams(surface: Surface, route: str) -> list[Variant]:
    """Return what any stream of server-sent events may look like."""
    return [Variant(name, surface, wire.raw_events(route, form)) for name, form in _STREAMS.items()]


def _status(name: str, surface: Surface, route: str, new: int, *, of: int) -> Variant:
    """Return a variant that answers with another status."""
    return Variant(name, surface, wire.answered(route, forms.status(new, of=of)))


def _adding(**fields: Any) -> OfValue:
    """Return a change that adds fields to an object."""
    return lambda one: {**one, **fields}


def _each(change: OfValue) -> OfValue:
    """Return a change of each item of a list; anything else stays as it is."""
    return lambda some: [change(one) for one in some] if isinstance(some, list) else some


def _inside(name: str) -> OfValue:
    """Return a change that puts a value into an object."""
    return lambda value: {name: value}


def _where(which: Callable[[Any], bool], change: OfValue) -> OfValue:
    """Return a change of some values alone."""
    return lambda value: change(value) if which(value) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and "error" in value


def _json_type(answer: Answer, request: Request) -> None:
    if answer.headers.get("content-type") == "application/json":
        _HEADERS["content_type_in_capitals_with_charset"](answer, request)


# ---- the simple application


def _probe(body: Any, media: str = "application/json") -> Any:
    def change(answer: Answer, _request: Request) -> None:
        text = body(json.loads(answer.body))
        answer.body = text.encode()
        answer.headers["content-type"] = media

    return change


def _further(document: Any) -> Any:
    return {**document, "further": {"a": [None]}} if isinstance(document, dict) else document


PROBES = [f"GET /{name}" for name in ("ping", "health", "readiness", "liveness")]
APPLICATION = (
    *_of_json("application", "* /invoke"),
    *_of_streams("application", "POST /invoke"),
    Variant("content_type_in_capitals", "application", wire.answered("POST /invoke", _json_type)),
    Variant(
        "result_in_an_object",
        "application",
        wire.answers("POST /invoke", _where(_is_text, _inside("result"))),
    ),
    Variant(
        "output_in_an_object",
        "application",
        wire.answers("POST /invoke", _where(_is_text, _inside("output"))),
    ),
    *(
        Variant(f"{route[5:]}_with_further_fields", "application", wire.answers(route, _further))
        for route in PROBES
    ),
    Variant(
        "ping_is_text_with_charset",
        "application",
        wire.answered("GET /ping", _probe(lambda one: one["status"], "text/plain; charset=utf-8")),
    ),
    Variant(
        "ping_is_a_json_string",
        "application",
        wire.answered("GET /ping", _probe(lambda one: json.dumps(one["status"]))),
    ),
    Variant(
        "health_is_text",
        "application",
        wire.answered("GET /health", _probe(lambda one: "ok\n", "text/plain")),
    ),
    Variant(
        "health_says_up",
        "application",
        wire.answers("GET /health", lambda one: {"status": "UP", "checks": []}),
    ),
    Variant(
        "readiness_is_true",
        "application",
        wire.answers("GET /readiness", lambda one: {"ready": True}),
    ),
    Variant(
        "liveness_is_a_word",
        "application",
        wire.answered("GET /liveness", _probe(lambda one: '"alive"')),
    ),
    _status("broken_json_is_422", "application", "POST /invoke", 422, of=400),
    Variant(
        "broken_json_is_refused_as_text",
        "application",
        wire.answered("POST /invoke", lambda answer, request: _text_if(answer, 400)),
    ),
    _status("an_exception_is_502", "application", "POST /invoke", 502, of=500),
    Variant(
        "stream_errors_have_further_fields",
        "application",
        wire.events("POST /invoke", _where(_is_error, _adding(code=7))),
    ),
    Variant(
        "stream_errors_have_an_event_type",
        "application",
        wire.raw_events("POST /invoke", lambda raw: _typed(raw)),
    ),
)


def _text_if(answer: Answer, status: int) -> None:
    if answer.status == status:
        answer.body, answer.headers["content-type"] = b"This is not JSON.", "text/plain"


def _typed(raw: bytes) -> bytes:
    return b"event: error\n" + raw if b'"error"' in raw else raw


# ---- API-server mode


def _session(change: OfValue) -> OfValue:
    """Change each session, alone and in the list."""

    def answer(document: Any) -> Any:
        if isinstance(document, list):
            return [change(one) if isinstance(one, dict) else one for one in document]
        return change(document) if isinstance(document, dict) and "id" in document else document

    return answer


def _snake(event: Any) -> Any:
    names = {name: re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name) for name in event}
    return {names[name]: value for name, value in event.items()}


def _explicit_nulls(event: Any) -> Any:
    return {**event, "partial": event.get("partial"), "errorCode": None, "longRunningToolIds": None}


def _word(request: Request) -> Any:
    """Return what a run has the reference agent say before it calls a tool, None if it has not."""
    try:
        return json.loads(request.json["newMessage"]["parts"][0]["text"])["word"]
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _increments_alone(event: Any, request: Request) -> Any:
    """Tell no whole text before a call: it is no final reply."""
    return wire.DROP if is_reply(event) and text_of(event) == _word(request) else event


def _with_the_call(event: Any, request: Request) -> Any:
    """Tell the whole text in the event of the call behind it."""
    if has(event, "functionCall") and _word(request) is not None:
        return with_parts(lambda parts: [{"text": _word(request)}, *parts])(event)
    return _increments_alone(event, request)


RUN, STREAM = "POST /run", "POST /run_sse"
API = (
    *_of_json("api_server", "* /*"),
    *_of_streams("api_server", STREAM),
    Variant("several_data_lines", "api_server", wire.raw_events(STREAM, forms.over_several_lines)),
    Variant("content_type_in_capitals", "api_server", wire.answered(ANY, _json_type)),
    Variant(
        "applications_in_an_object",
        "api_server",
        wire.answers("GET /list-apps", _inside("apps")),
    ),
    Variant(
        "applications_are_objects",
        "api_server",
        wire.answers("GET /list-apps", _each(_inside("name"))),
    ),
    Variant(
        "applications_in_another_order",
        "api_server",
        wire.answers("GET /list-apps", lambda names: names[::-1]),
    ),
    Variant(
        "sessions_in_an_object",
        "api_server",
        wire.answers(f"GET {APPS}", _inside("sessions")),
    ),
    Variant(
        "sessions_in_another_order",
        "api_server",
        wire.answers(f"GET {APPS}", lambda some: some[::-1]),
    ),
    Variant(
        "sessions_listed_with_id_alone",
        "api_server",
        wire.answers(f"GET {APPS}", lambda some: [{"id": one["id"]} for one in some]),
    ),
    Variant(
        "sessions_with_further_fields",
        "api_server",
        wire.answers(f"* {APPS}*", _session(_adding(title=None, tags=[]))),
    ),
    Variant(
        "sessions_without_app_and_user",
        "api_server",
        wire.answers(f"* {APPS}*", _session(lossy.without("appName", "userId", "state"))),
    ),
    _status("a_session_is_created_with_201", "api_server", f"POST {APPS}", 201, of=200),
    _status(
        "a_named_session_is_created_with_201", "api_server", f"POST {APPS}/{{session}}", 201, of=200
    ),
    _status("deletion_is_204", "api_server", f"DELETE {APPS}/{{session}}", 204, of=200),
    Variant(
        "deletion_tells_a_result",
        "api_server",
        wire.answers(f"DELETE {APPS}/{{session}}", lambda _: {"deleted": True}),
    ),
    _status("an_unknown_session_is_410", "api_server", f"GET {APPS}/{{session}}", 410, of=404),
    Variant(
        "artifacts_in_an_object",
        "api_server",
        wire.answers(f"GET {APPS}/{{session}}/artifacts", _inside("artifacts")),
    ),
    Variant(
        "events_in_an_object",
        "api_server",
        wire.answers(RUN, _where(_is_list, _inside("events"))),
    ),
    Variant(
        "events_with_further_fields",
        "api_server",
        wire.answers(RUN, _each(_adding(model={"name": "m"}))),
    ),
    Variant(
        "streamed_events_with_further_fields",
        "api_server",
        wire.events(STREAM, _adding(model={"name": "m"})),
    ),
    Variant("events_with_nulls", "api_server", wire.answers(RUN, _each(_explicit_nulls))),
    Variant("streamed_events_with_nulls", "api_server", wire.events(STREAM, _explicit_nulls)),
    Variant(
        "streamed_events_in_snake_case",
        "api_server",
        wire.events(STREAM, lambda one: one if "error" in one else _snake(one)),
    ),
    _status("a_missing_field_is_400", "api_server", "POST /run*", 400, of=422),
    Variant("increments_alone_before_a_call", "api_server", wire.events(STREAM, _increments_alone)),
    Variant("whole_text_with_the_call", "api_server", wire.events(STREAM, _with_the_call)),
    Variant(
        "errors_are_text",
        "api_server",
        wire.answered("POST /run*", lambda answer, request: _text_if(answer, 422)),
    ),
    Variant(
        "version_is_text",
        "api_server",
        wire.answered("GET /version", _probe(lambda _: "1.2.3", "text/plain")),
    ),
    Variant("version_is_a_string", "api_server", wire.answers("GET /version", lambda _: "1.2.3")),
)


# ---- control plane and sandbox


def _data(change: OfValue) -> OfValue:
    return lambda result: {**result, "data": change(result["data"])}


def _outputs(change: OfValue) -> OfValue:
    return _data(lambda data: {**data, "outputs": change(data["outputs"])})


def _split(some: Any) -> Any:
    """Tell what was printed in two streams."""
    told = []
    for one in some:
        text = one["text"]
        if one["output_type"] == "stream" and isinstance(text, str) and len(text) > 1:
            half = len(text) // 2
            told += [{**one, "text": text[:half]}, {**one, "text": text[half:]}]
        else:
            told.append(one)
    return told


def _is_value(output: Any) -> bool:
    return bool(output["output_type"] == "execute_result")


def _has_traceback(output: Any) -> bool:
    return isinstance(output["traceback"], list)


def _joined_traceback(output: Any) -> Any:
    return {**output, "traceback": "\n".join(output["traceback"])}


def _failed(result: Any) -> bool:
    return bool(result["data"]["status"] != "ok")


def _result(change: OfValue) -> wire.Change:
    """Change the Result of the envelope."""
    return wire.invoke_tool(lambda document: {**document, "Result": change(document["Result"])})


def _written(**how: Any) -> wire.Change:
    """Write the JSON of 2.7 in another way."""
    return _result(
        lambda result: {**result, "Result": json.dumps(json.loads(result["Result"]), **how)}
    )


def _renamed_code(document: Any) -> Any:
    error = document.get("ResponseMetadata", {}).get("Error")
    if error:
        error |= {"Code": f"Other.{error['Code']}", "CodeN": 1, "Data": {}}
    return document


def _plain_refusal(answer: Answer, _request: Request) -> None:
    """Refuse without the envelope."""
    if answer.status >= 400:
        error = json.loads(answer.body).get("ResponseMetadata", {}).get("Error", {})
        answer.body = json.dumps({"error": error.get("Message", "")}).encode()


def _refused_with_200(answer: Answer, _request: Request) -> None:
    """Tell a refusal in the envelope alone."""
    if b'"Error"' in answer.body:
        answer.status = 200


AS_DISPLAY = _adding(output_type="display_data", execution_count=None)
EXECUTIONS = (
    Variant("stdout_in_two_streams", "sandbox", wire.executions(_outputs(_split))),
    Variant(
        "results_as_display_data",
        "sandbox",
        wire.executions(_outputs(_each(_where(_is_value, AS_DISPLAY)))),
    ),
    Variant(
        "values_without_a_count",
        "sandbox",
        wire.executions(_outputs(_each(_adding(execution_count=None)))),
    ),
    Variant(
        "traceback_as_one_text",
        "sandbox",
        wire.executions(_outputs(_each(_where(_has_traceback, _joined_traceback)))),
    ),
    Variant(
        "outputs_with_further_keys",
        "sandbox",
        wire.executions(_outputs(_each(_adding(time=1)))),
    ),
    Variant("another_message", "sandbox", wire.executions(_adding(message="", further=None))),
    Variant(
        "another_kernel_name",
        "sandbox",
        wire.executions(_data(_adding(kernel_name="python-3.12-data"))),
    ),
    Variant(
        "another_data_session",
        "sandbox",
        wire.executions(_data(lambda data: {**data, "session_id": f"kernel-{data['session_id']}"})),
    ),
    Variant(
        "failed_is_the_status",
        "sandbox",
        wire.executions(_where(_failed, _data(_adding(status="failed")))),
    ),
    Variant(
        "success_of_a_failure_is_true",
        "sandbox",
        wire.executions(_where(_failed, _adding(success=True))),
    ),
    Variant("a_result_of_several_lines", "sandbox", _written(indent=4)),
    Variant("a_result_that_is_not_escaped", "sandbox", _written(ensure_ascii=False)),
)
CONTROL_PLANE = (
    *_of_json("control_plane", "POST /"),
    Variant(
        "endpoints_that_are_not_empty",
        "control_plane",
        _result(_adding(Endpoint="https://sandbox.example", InternalEndpoint="http://10.0.0.1")),
    ),
    Variant(
        "an_envelope_with_further_fields",
        "control_plane",
        wire.invoke_tool(
            lambda document: {
                "ResponseMetadata": {**document["ResponseMetadata"], "Zone": "a"},
                "Result": {**document["Result"], "Cost": 0},
            }
        ),
    ),
    Variant("other_error_codes", "control_plane", wire.answers("POST /", _renamed_code)),
    Variant(
        "refusals_without_an_envelope", "control_plane", wire.answered("POST /", _plain_refusal)
    ),
    Variant("refusals_with_200", "control_plane", wire.answered("POST /", _refused_with_200)),
    _status("an_unknown_tool_is_400", "control_plane", "POST /", 400, of=404),
    _status("a_wrong_signature_is_403", "control_plane", "POST /", 403, of=401),
    _status("a_wrong_signature_is_401", "control_plane", "POST /", 401, of=403),
    *(
        Variant(one.name, "control_plane", one.change)
        for one in EXECUTIONS
        if one.name in ("outputs_with_further_keys", "another_message", "a_result_of_several_lines")
    ),
)


# ---- MCP and its services


def _tools(change: OfValue) -> wire.Change:
    """Change the tools of a list."""
    return wire.calls("tools/list", lambda found: {**found, "tools": change(found["tools"])})


def _schemas(change: OfValue) -> wire.Change:
    """Change the schema of each tool."""
    return _tools(_each(lambda tool: {**tool, "inputSchema": change(tool["inputSchema"])}))


def _titled(schema: Any) -> Any:
    named = {
        name: {**one, "title": name.title()} if isinstance(one, dict) else one
        for name, one in schema.get("properties", {}).items()
    }
    return {**schema, "properties": named, "title": "Arguments"}


def _content(change: OfValue) -> OfValue:
    return lambda found: {**found, "content": change(found.get("content", []))}


def _indented_text(some: Any) -> Any:
    def text(one: Any) -> Any:
        try:
            return {**one, "text": json.dumps(json.loads(one["text"]), indent=3)}
        except (KeyError, ValueError):
            return one

    return [text(one) for one in some]


def _of_mcp(surface: Surface) -> tuple[Variant, ...]:
    return (
        *_of_json(surface, "* /mcp*"),
        *_of_streams(surface, "* /mcp*"),
        Variant("tools_in_another_order", surface, _tools(lambda tools: tools[::-1])),
        Variant(
            "tools_with_annotations",
            surface,
            _tools(_each(_adding(title="T", annotations={"readOnlyHint": True}))),
        ),
        Variant("schemas_with_titles", surface, _schemas(_titled)),
        Variant("schemas_that_refuse_more", surface, _schemas(_adding(additionalProperties=False))),
        Variant(
            "schemas_with_a_dialect",
            surface,
            _schemas(
                lambda schema: {
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    **schema,
                }
            ),
        ),
        Variant(
            "indented_texts_of_results", surface, wire.calls("tools/call", _content(_indented_text))
        ),
        Variant(
            "results_with_metadata",
            surface,
            wire.calls("tools/call", _adding(_meta={"trace": "1"})),
        ),
        _status("a_refused_key_is_403", surface, "* /mcp*", 403, of=401),
    )


MCP = _of_mcp("mcp")
SERVICES = _of_mcp("services")


# ---- A2A


def _task(change: OfValue) -> OfValue:
    """Change a task, wherever an answer has it."""

    def result(found: Any) -> Any:
        if isinstance(found, dict) and isinstance(found.get("task"), dict):
            return {**found, "task": change(found["task"])}
        return change(found) if isinstance(found, dict) and "status" in found else found

    return result


def _in_two_parts(task: Any) -> Any:
    artifacts = [{**one, "name": "result", "metadata": {}} for one in task.get("artifacts", [])]
    return {**task, "artifacts": artifacts} if artifacts else task


CARD = "GET /.well-known/agent-card.json"
A2A = (
    *_of_json("a2a", "POST /"),
    *_of_json("a2a", CARD, "card_"),
    *_of_streams("a2a", "POST /"),
    Variant("several_data_lines", "a2a", wire.raw_events("POST /", forms.over_several_lines)),
    Variant(
        "a_card_with_further_fields",
        "a2a",
        wire.answers(
            CARD,
            _adding(provider={"organization": "o", "url": "https://o.example"}),
        ),
    ),
    *(
        Variant(
            f"tasks_with_metadata_{method}",
            "a2a",
            wire.calls(method, _task(_adding(metadata={"x": 1}))),
        )
        for method in ("SendMessage", "GetTask")
    ),
    *(
        Variant(f"named_artifacts_{method}", "a2a", wire.calls(method, _task(_in_two_parts)))
        for method in ("SendMessage", "GetTask")
    ),
    Variant(
        "other_texts_of_errors",
        "a2a",
        wire.answers(
            "POST /",
            _where(
                _is_error,
                lambda document: {
                    **document,
                    "error": {**document["error"], "message": "No.", "data": []},
                },
            ),
        ),
    ),
)

VARIANTS: tuple[Variant, ...] = (
    *APPLICATION,
    *API,
    *CONTROL_PLANE,
    *EXECUTIONS,
    *MCP,
    *SERVICES,
    *A2A,
)
