"""The bodies of requests: their fields, and the response to a wrong body.

A wrong body is answered with 422 and a list of the wrong fields, in the real server's wording.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from starlette.requests import Request

from agentdouble import strict_json
from agentdouble.api_server.wire import Content, Json, Part
from agentdouble.errors import ApiError

T = TypeVar("T")


class Body(BaseModel):
    """A body with camelCase or snake_case keys; unknown keys are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        val_json_bytes="base64",
        ser_json_bytes="base64",
    )


class RunRequest(Body):
    """The body of /run and /run_sse (section 2.2)."""

    app_name: str | None = None
    user_id: str
    session_id: str
    new_message: Content | None = None
    streaming: bool = False
    state_delta: Json | None = None
    function_call_event_id: str | None = None
    invocation_id: str | None = None
    custom_metadata: Json | None = None
    service_tier: str | None = None


class Actions(Body):
    """The actions of an event, besides its content."""

    model_config = ConfigDict(extra="forbid")

    skip_summarization: bool | None = None
    state_delta: Json = {}
    artifact_delta: dict[str, int] = {}
    transfer_to_agent: str | None = None
    transfer_reason: str | None = None
    escalate: bool | None = None
    requested_auth_configs: Json = {}
    requested_tool_confirmations: Json = {}
    compaction: Json | None = None
    end_of_agent: bool | None = None
    agent_state: Json | None = None
    rewind_before_invocation_id: str | None = None
    route: Any = None
    render_ui_widgets: Any = None
    set_model_response: Any = None


class NodeInfo(Body):
    """The place in a workflow where an event comes from."""

    path: str = ""
    output_for: list[str] | None = None
    message_as_output: bool | None = None


class EventBody(Body):
    """An event for a new session; the fields have the order of the JSON."""

    model_version: str | None = None
    content: Content | None = None
    grounding_metadata: Json | None = None
    partial: bool | None = None
    turn_complete: bool | None = None
    turn_complete_reason: str | None = None
    interaction_status: str | None = None
    finish_reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    interrupted: bool | None = None
    custom_metadata: Json | None = None
    usage_metadata: Json | None = None
    invocation_id: str = ""
    author: str = ""
    actions: Actions = Actions()
    output: Any = None
    node_info: NodeInfo = NodeInfo()
    long_running_tool_ids: list[str] | None = None
    branch: str | None = None
    isolation_scope: str | None = None
    id: str = ""
    timestamp: float | None = None


class CreateSession(Body):
    """The body that creates a session (U-SESSION-CREATE)."""

    session_id: str | None = None
    state: Json | None = None
    events: list[EventBody] | None = None
    options: Json | None = None


class UpdateSession(Body):
    """The body that changes a session's state."""

    state_delta: Json


class SaveArtifact(Body):
    """The body that stores an artifact."""

    filename: str
    artifact: Part
    custom_metadata: Json | None = None


class UpdateMemory(Body):
    """The body that adds a session to the memory."""

    session_id: str


RUN: TypeAdapter[RunRequest] = TypeAdapter(RunRequest)
CREATE: TypeAdapter[CreateSession | None] = TypeAdapter(CreateSession | None)
STATE: TypeAdapter[Json | None] = TypeAdapter(Json | None)
UPDATE: TypeAdapter[UpdateSession] = TypeAdapter(UpdateSession)
ARTIFACT: TypeAdapter[SaveArtifact] = TypeAdapter(SaveArtifact)
MEMORY: TypeAdapter[UpdateMemory] = TypeAdapter(UpdateMemory)


_FLAG: TypeAdapter[bool] = TypeAdapter(bool)
_NUMBER: TypeAdapter[int] = TypeAdapter(int)


def flag(request: Request, name: str) -> bool:
    """Return a flag of the query, False if it is absent; raise ApiError for other values."""
    given = request.query_params.get(name)
    return given is not None and _validated(given, _FLAG, ("query", name))


def number(request: Request, name: str) -> int | None:
    """Return a number of the query, None if it is absent; raise ApiError for other values."""
    given = request.query_params.get(name)
    return None if given is None else _validated(given, _NUMBER, ("query", name))


async def required(request: Request, adapter: TypeAdapter[T]) -> T:
    """Return a request's body; raise ApiError if it is absent or wrong."""
    document = await _document(request)
    if document is None:
        raise ApiError(422, [_missing_body()])
    return _validated(document, adapter)


async def optional(request: Request, adapter: TypeAdapter[T | None]) -> T | None:
    """Return a request's body, or None without one; raise ApiError if it is wrong."""
    document = await _document(request)
    return None if document is None else _validated(document, adapter)


def _validated(document: Any, adapter: TypeAdapter[T], where: tuple[str, ...] = ("body",)) -> T:
    try:
        return adapter.validate_python(document, from_attributes=True)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise ApiError(422, [{**one, "loc": (*where, *one["loc"])} for one in found]) from None


async def _document(request: Request) -> Any:
    body = await request.body()
    if not body:
        return None
    if not _is_json(request.headers.get("content-type", "")):
        return body.decode("utf-8", "replace")  # not an object: validation refuses it
    try:
        return await strict_json.read(body)
    except json.JSONDecodeError as error:
        raise ApiError(422, [_no_json(error)]) from None
    except (ValueError, RecursionError):
        raise ApiError(400, "There was an error parsing the body") from None


def _is_json(content_type: str) -> bool:
    main, _, sub = content_type.partition(";")[0].strip().lower().partition("/")
    return main == "application" and (sub == "json" or sub.endswith("+json"))


def _no_json(error: json.JSONDecodeError) -> Json:
    return {
        "type": "json_invalid",
        "loc": ("body", error.pos),
        "msg": "JSON decode error",
        "input": {},
        "ctx": {"error": error.msg},
    }


def _missing_body() -> Json:
    return {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}
