"""The bodies of requests, and content with its parts (section 2.2)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

Json = dict[str, Any]


class Strict(BaseModel):
    """An object of the wire format that refuses unknown keys."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        from_attributes=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )


class Blob(Strict):
    """The bytes of a part."""

    data: bytes | None = None
    display_name: str | None = None
    mime_type: str | None = None


class FileData(Strict):
    """A part whose content is stored at a URI."""

    display_name: str | None = None
    file_uri: str | None = None
    mime_type: str | None = None


class FunctionCall(Strict):
    """A tool call."""

    id: str | None = None
    args: Json | None = None
    name: str | None = None
    partial_args: list[Json] | None = None
    will_continue: bool | None = None


class FunctionResponse(Strict):
    """A tool's answer."""

    will_continue: bool | None = None
    scheduling: str | None = None
    parts: list[Json] | None = None
    id: str | None = None
    name: str | None = None
    response: Json | None = None


class ExecutableCode(Strict):
    """Code that a model wants to run."""

    code: str | None = None
    language: str | None = None
    id: str | None = None


class CodeExecutionResult(Strict):
    """The result of executed code."""

    outcome: str | None = None
    output: str | None = None
    id: str | None = None


class Part(Strict):
    """One part of a message: a text, a tool call, bytes and so on."""

    media_resolution: Json | None = None
    code_execution_result: CodeExecutionResult | None = None
    executable_code: ExecutableCode | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Blob | None = None
    text: str | None = None
    thought: bool | None = None
    thought_signature: bytes | None = None
    video_metadata: Json | None = None
    tool_call: Json | None = None
    tool_response: Json | None = None
    part_metadata: Json | None = None
    audio_transcription: Json | None = None
    media_processing: Json | None = None
    speech_metadata: Json | None = None


class Content(Strict):
    """A message: its parts, and the role of its author."""

    parts: list[Part] | None = None
    role: str | None = None


def to_wire(model: BaseModel) -> Json:
    """Return an object as JSON-ready data, without the fields that are not set."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Body(BaseModel):
    """A body with camelCase or snake_case keys; unknown keys are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        val_json_bytes="base64",
        ser_json_bytes="base64",
    )


def _encodable(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError(
            "string_unicode", "Input should be a valid string, without lone surrogates"
        ) from None
    return name


# only what a path can name; a body's JSON could contain more
Name = Annotated[str, AfterValidator(_encodable)]


class RunRequest(Body):
    """The body of /run and /run_sse (section 2.2)."""

    app_name: str | None = None
    user_id: Name
    session_id: Name
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

    session_id: Name | None = None
    state: Json | None = None
    events: list[EventBody] | None = None
    options: Json | None = None


class UpdateSession(Body):
    """The body that changes a session's state."""

    state_delta: Json


class SaveArtifact(Body):
    """The body that stores an artifact."""

    filename: Name
    artifact: Part
    custom_metadata: Json | None = None


class UpdateMemory(Body):
    """The body that adds a session to the memory."""

    session_id: Name
