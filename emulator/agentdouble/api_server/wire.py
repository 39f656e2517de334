"""JSON of requests and responses, and content with its parts (section 2.2), strict like the server.

Keys may be camelCase or snake_case; an unknown key is an error that names it. Bytes are base64: in
requests standard or URL-safe, in responses URL-safe.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Fragment = orjson.Fragment  # finished JSON, which is put into other JSON unchanged


def dumps(value: Any) -> bytes:
    """Return a value as JSON; raise TypeError or ValueError if JSON cannot represent it.

    The standard library writes JSON that orjson refuses: integers beyond 64 bits and lone
    surrogates.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def loads(text: bytes) -> Any:
    """Return the value of JSON text."""
    try:
        return orjson.loads(text)
    except ValueError:  # an escaped lone surrogate
        return json.loads(text)


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
