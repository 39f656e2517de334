"""The inputs of an operation: their schema, and the media type of its body."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from agentdouble.mcp_services.openapi.definition import (
    Json,
    Kind,
    Parameter,
    Style,
    Where,
    mapping,
)

SIMPLE = Style("simple")
SCALARS = ("boolean", "integer", "number", "string")


FILE_TEXT = (
    "The file's bytes in base64, or an object with its 'text' or its 'base64', and perhaps its "
    "'filename' and 'media_type'."
)
FILE_OBJECT_TEXT = FILE_TEXT.partition(", or ")[2].capitalize()
OTHER = "other"
FILE: Json = {
    "description": FILE_TEXT,
    "anyOf": [
        {"type": "string", "contentEncoding": "base64"},
        {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "base64": {"type": "string", "contentEncoding": "base64"},
                "filename": {"type": "string"},
                "media_type": {"type": "string"},
            },
            "oneOf": [{"required": ["text"]}, {"required": ["base64"]}],
            "additionalProperties": False,
        },
    ],
}
_TEXTS = (
    *("/xml", "+xml", "/yaml", "/x-yaml", "+yaml", "/javascript", "/graphql"),
    *("ndjson", "jsonl", "jsonlines", "json-seq"),
)
_JSON = ("application/json", "text/json", "application/x-json", "text/x-json")

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+(?:\s*;[\x20-\x7e]*)?\Z", re.ASCII)


@dataclass(frozen=True)
class OperationInput:
    """One value that a caller gives: a parameter, a form field of 2.0, or a body."""

    name: str
    where: Where | str  # also "form" and "body"
    schema: Any  # converted
    required: bool
    description: str = ""
    deprecated: bool = False
    style: Style = SIMPLE


def arguments(fields: Sequence[OperationInput]) -> list[str]:
    """Return a unique name for each input: its name on the wire, with its place on a clash."""
    common = Counter(field.name for field in fields)
    used: set[str] = {name for name, times in common.items() if times == 1}
    names = []
    for field in fields:
        name = field.name if common[field.name] == 1 else _free(f"{field.name}_{field.where}", used)
        used.add(name)
        names.append(name)
    return names


def _free(name: str, used: set[str]) -> str:
    number, candidate = 1, name
    while candidate in used:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def schema_of(fields: Sequence[OperationInput], names: Sequence[str], definitions: Json) -> Json:
    """Return the schema of the arguments, which allows no other arguments."""
    schema: Json = {
        "type": "object",
        "properties": {name: _described(field) for name, field in zip(names, fields, strict=True)},
    }
    required = [name for name, field in zip(names, fields, strict=True) if field.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema


def _described(field: OperationInput) -> Any:
    schema: Json = dict(field.schema) if isinstance(field.schema, dict) else {}
    if field.schema is False:
        schema = {"not": {}}
    if field.description:
        schema["description"] = field.description
    if field.deprecated:
        schema["deprecated"] = True
    return schema


def parameters(fields: Sequence[OperationInput], names: Sequence[str]) -> tuple[Parameter, ...]:
    """Return the parameters among the inputs."""
    return tuple(
        Parameter(name, field.name, field.where, field.style)
        for name, field in zip(names, fields, strict=True)
        if field.where in ("path", "query", "header", "cookie")
    )


def is_media_type(text: str) -> bool:
    """Return whether a text is a media type, or a range of them, that a header can have."""
    return _MEDIA_TYPE.match(text) is not None


def essence(media_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON's."""
    kind = essence(media_type)
    return kind in (*_JSON, "application/*", "*/*") or kind.endswith("+json")


def is_text(media_type: str) -> bool:
    """Return whether a media type that is not JSON's is text."""
    kind = essence(media_type)
    return kind.startswith("text/") or kind.endswith(_TEXTS)


def kind_of(media_type: str, schema: Any = None) -> Kind:
    """Return how a body of a media type and a schema is encoded.

    A body that is base64 by its schema (``format: byte``) is text.
    """
    if is_json(media_type):
        return "json"
    if essence(media_type) == "multipart/form-data":
        return "multipart"
    if essence(media_type) == "application/x-www-form-urlencoded":
        return "urlencoded"
    written = mapping(schema)
    encoded = written.get("format") == "byte" or "contentEncoding" in written
    return "text" if is_text(media_type) or encoded else "raw"


def preferred(media_types: Sequence[str]) -> str:
    """Return the media type to send: the one that a model writes best."""
    order = ("json", "multipart", "urlencoded", "text", "raw")
    return min(media_types, key=lambda media_type: order.index(kind_of(media_type)))


def sent_as(media_type: str) -> str:
    """Return the Content-Type for a media type that may be a range."""
    if "*" not in media_type:
        return media_type
    if kind_of(media_type) == "json":
        return "application/json"
    return "text/plain" if is_text(media_type) else "application/octet-stream"


def schema_of_kind(kind: Kind, media_type: str, type_: Any, converted: Any) -> Json:
    """Return the schema of a body that is sent unchanged: a text or a file."""
    if kind == "raw":
        return FILE
    if is_text(media_type):
        return text_schema(media_type, type_, converted)
    return {"type": "string", "contentMediaType": media_type, "contentEncoding": "base64"}


def text_schema(media_type: str, type_: Any, converted: Any) -> Json:
    """Return the schema of a text: that of the definition, unless it describes no text."""
    written: Json = {"type": "string", "contentMediaType": media_type}
    if type_ not in SCALARS:
        return written
    found: Json = dict(converted)
    return found if type_ != "string" else found | written


def file_schema(description: str, takes: Collection[str], other: Json) -> Json:
    """Return the schema of a form field that takes ``"one"`` file, ``"several"``, or both.

    If it takes ``"other"`` values, too, which ``other`` describes, a file is an object.
    """
    extra = {"description": description} if description else {}
    if OTHER in takes:
        file: Json = {"description": FILE_OBJECT_TEXT, **FILE["anyOf"][1]}
        several = {"type": "array", "items": {"anyOf": [file, {}]}}
        return {**extra, "anyOf": [several if "several" in takes else file, other]}
    several = {"type": "array", "items": FILE}
    if "several" not in takes:
        return {**FILE, "description": f"{description} {FILE_TEXT}".strip()}
    return {**({"anyOf": [FILE, several]} if "one" in takes else several), **extra}
