"""JSON on the wire, and content with its parts (section 2.2), as strict as the real server.

Keys may be camelCase or snake_case; an unknown key is an error that names it. Bytes are base64,
standard or URL-safe when they come in and URL-safe when they go out.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Fragment = orjson.Fragment  # JSON that is written already, to be put into other JSON as it is


def dumps(value: Any) -> bytes:
    """Return JSON; raise TypeError or ValueError for a value that is none.

    The standard library writes what orjson refuses though it is JSON: integers beyond 64 bits
    and lone surrogates.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def loads(text: bytes) -> Any:
    """Return the value of JSON that ``dumps`` wrote."""
    try:
        return orjson.loads(text)
    except ValueError:  # an escaped lone surrogate
        return json.loads(text)


Json = dict[str, Any]


class Strict(BaseModel):
    """A wire object that refuses unknown keys."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        from_attributes=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )


class Blob(Strict):
    """Bytes inside a part."""

    data: bytes | None = None
    display_name: str | None = None
    mime_type: str | None = None


class FileData(Strict):
    """A part that stands elsewhere."""

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
    """Code that a model wants run."""

    code: str | None = None
    language: str | None = None
    id: str | None = None


class CodeExecutionResult(Strict):
    """The outcome of code."""

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
    """A message: its parts, and its author's role."""

    parts: list[Part] | None = None
    role: str | None = None


def to_wire(model: BaseModel) -> Json:
    """Return a wire object as JSON-ready data, without the fields that are not set."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
