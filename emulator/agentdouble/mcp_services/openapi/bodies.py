"""The choice of a body's media type, and the schema of what a caller gives for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from agentdouble.mcp_services.openapi.definition import Json

Kind = Literal["json", "urlencoded", "multipart", "raw"]

FILE_TEXT = (
    "The file's bytes in base64, or an object with its 'text' or its 'base64', and perhaps its "
    "'filename' and 'media_type'."
)
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
_TEXTS = ("/xml", "+xml", "/yaml", "/x-yaml", "+yaml", "/javascript", "/graphql", "/x-ndjson")


_MEDIA_TYPE = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+(?:\s*;[\x20-\x7e]*)?\Z", re.ASCII)


def is_media_type(text: str) -> bool:
    """Return whether a text is a media type, or a range of them, that a header can have."""
    return _MEDIA_TYPE.match(text) is not None


def essence(media_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON's."""
    kind = essence(media_type)
    return kind in ("application/json", "text/json", "application/*", "*/*") or kind.endswith(
        "+json"
    )


def is_text(media_type: str) -> bool:
    """Return whether a media type that is not JSON's is text."""
    kind = essence(media_type)
    return kind.startswith("text/") or kind.endswith(_TEXTS)


def kind_of(media_type: str) -> Kind:
    """Return how a body of a media type is encoded."""
    if is_json(media_type):
        return "json"
    if essence(media_type) == "multipart/form-data":
        return "multipart"
    if essence(media_type) == "application/x-www-form-urlencoded":
        return "urlencoded"
    return "raw"


def preferred(media_types: Sequence[str]) -> str:
    """Return the media type to send: the one that a model writes best."""
    order = ("json", "multipart", "urlencoded", "raw")
    return min(media_types, key=lambda one: (order.index(kind_of(one)), not is_text(one)))


def sent_as(media_type: str) -> str:
    """Return the Content-Type for a media type that may be a range."""
    if "*" not in media_type:
        return media_type
    if kind_of(media_type) == "json":
        return "application/json"
    return "text/plain" if is_text(media_type) else "application/octet-stream"


def raw_schema(media_type: str) -> Json:
    """Return the schema of a body that is sent unchanged."""
    if is_text(media_type):
        return {"type": "string", "contentMediaType": media_type}
    return FILE


def file_schema(description: str, *, several: bool) -> Json:
    """Return the schema of a form field that takes a file, or several files."""
    if several:
        said = {"description": description} if description else {}
        return {"type": "array", "items": FILE, **said}
    return {**FILE, "description": f"{description} {FILE_TEXT}".strip()}
