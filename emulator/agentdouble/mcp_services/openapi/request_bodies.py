"""The bodies of requests: JSON, forms, files and text, from checked arguments."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.openapi import inputs
from agentdouble.mcp_services.openapi.definition import DefinedBody, DefinedField, Style
from agentdouble.mcp_services.openapi.serialization import pairs, text_of

_REPEATED = Style("form", explode=True)


@dataclass(frozen=True)
class RequestContent:
    """An encoded body; httpx chooses the boundary in the media type of ``files``."""

    media_type: str | None = None
    content: bytes | None = None
    files: list[Any] | None = None


def of(body: DefinedBody | None, arguments: Mapping[str, Any]) -> RequestContent:
    """Return the body for the arguments."""
    if body is None:
        return RequestContent()
    if body.argument is None:
        form = {
            name: arguments[argument]
            for argument, name in body.arguments.items()
            if argument in arguments
        }
        return _form(body, form) if form else RequestContent()
    if body.argument not in arguments:
        return RequestContent()
    value = arguments[body.argument]
    if body.kind == "json":
        written = json.dumps(value, separators=(",", ":"))
        return RequestContent(body.media_type, _in_charset(written, body.media_type))
    if body.kind == "text":
        _check_text(body.argument, value, body.media_type)
        return RequestContent(body.media_type, _in_charset(text_of(value), body.media_type))
    if body.kind == "raw":
        return _raw(body, value)
    return _form(body, value)


def _raw(body: DefinedBody, value: Any) -> RequestContent:
    content, _, given = _file(body.argument or "body", value)
    media_type = given or body.media_type
    if media_type.startswith("multipart/") and "boundary=" not in media_type:
        raise ToolCallError(
            f"Argument {body.argument!r}: a body of {media_type} is sent as given. Give its "
            "'media_type' with the boundary that it uses."
        )
    return RequestContent(media_type, content)


def _in_charset(text: str, media_type: str) -> bytes:
    """Return a text in the charset of its media type; raise ToolCallError if that cannot be."""
    message = Message()
    message["content-type"] = media_type
    charset = message.get_content_charset("utf-8")
    try:
        return text.encode(charset)
    except (LookupError, UnicodeError):
        raise ToolCallError(f"The text cannot be written in the charset {charset!r}.") from None


def _form(body: DefinedBody, values: Any) -> RequestContent:
    if not isinstance(values, dict):
        raise ToolCallError(f"Argument {body.argument!r}: a form is an object.")
    if body.kind == "multipart":
        parts = [
            part
            for name, value in values.items()
            for part in _parts(name, value, body.fields.get(name, body.others))
        ]
        return RequestContent(files=parts) if parts else RequestContent()
    encoded = []
    for name, value in values.items():
        field = body.fields.get(name, body.others)
        style = field.style or (Style("json") if isinstance(value, dict) else _REPEATED)
        if field.media_types:
            for item in value if isinstance(value, list) else [value]:
                _check_text(name, item, field.media_types[0])
        encoded += [f"{key}={text}" for key, text in pairs(name, value, style)]
    return RequestContent(body.media_type, "&".join(encoded).encode("ascii"))


def _parts(name: str, value: Any, field: DefinedField) -> list[Any]:
    """Return the parts of one field, in the form that httpx takes."""
    if value is None:
        return []
    if field.is_file:
        values = value if isinstance(value, list) else [value]
        as_other = dataclasses.replace(field, is_file=False, media_types=())
        return [
            part
            for each in values
            for part in (
                _parts(name, each, as_other)
                if field.or_other and not _is_file(each)
                else [_file_part(name, each, field.media_types)]
            )
        ]
    if field.style is not None:  # a multipart body does not encode its texts
        encoded_pairs = pairs(name, value, dataclasses.replace(field.style, reserved=False))
        return [_text_part(unquote(key), unquote(text)) for key, text in encoded_pairs]
    if isinstance(value, list):
        return [part for item in value for part in _parts(name, item, field)]
    if field.media_types:
        media_type = inputs.sent_as(field.media_types[0])
        if inputs.is_json(media_type):
            return [_text_part(name, json.dumps(value, separators=(",", ":")), media_type)]
        _check_text(name, value, media_type)
        return [_text_part(name, text_of(value), media_type)]
    return [
        _text_part(name, text_of(value), "application/json" if isinstance(value, dict) else None)
    ]


def _text_part(name: str, text: str, media_type: str | None = None) -> Any:
    return (name, (None, text.encode(), media_type))


def _check_text(name: str, value: Any, media_type: str) -> None:
    """Raise ToolCallError for a value that would have to be written in a format such as XML."""
    if isinstance(value, (dict, list)):
        raise ToolCallError(f"Argument {name!r} is sent as {media_type}: give it as text.")


def _is_file(value: Any) -> bool:
    """Return whether a value is an object that can only be a file."""
    properties = inputs.FILE["anyOf"][1]["properties"]
    return (
        isinstance(value, dict)
        and value.keys() <= properties.keys()
        and ("text" in value) != ("base64" in value)
    )


def _keys(value: Mapping[str, Any]) -> str:
    """Return the keys of an object in a few words."""
    return f"an object with {', '.join(map(repr, value))}" if value else "an empty object"


def _file_part(name: str, value: Any, allowed: Sequence[str]) -> Any:
    content, filename, given = _file(name, value)
    return (name, (filename, content, given or _media_type(filename, allowed)))


def _media_type(filename: str, allowed: Sequence[str]) -> str:
    """Return the media type of a file: by its name, if the definition allows that one."""
    guessed = mimetypes.guess_type(filename)[0] or "application/octet-stream"
    if not allowed or any(fnmatchcase(guessed, inputs.essence(pattern)) for pattern in allowed):
        return guessed
    return next((media_type for media_type in allowed if "*" not in media_type), guessed)


def _file(name: str, value: Any) -> tuple[bytes, str, str | None]:
    """Return a file's bytes, its name, and its media type if the caller gave one."""
    fields = value if isinstance(value, dict) else {"base64": value}
    if not _is_file(fields):
        raise ToolCallError(
            f"Argument {name!r} is a file: give its bytes in base64, or an object with either its "
            "'text' or its 'base64', and perhaps its 'filename' and 'media_type'; not "
            f"{_keys(fields)}."
        )
    media_type = fields.get("media_type")
    if media_type is not None and not inputs.is_media_type(str(media_type)):
        raise ToolCallError(f"Argument {name!r}: {media_type!r} is not a media type.")
    filename = str(fields.get("filename") or name)
    if "text" in fields:
        return str(fields["text"]).encode(), filename, media_type
    try:
        content = base64.b64decode(str(fields["base64"]), validate=True)
    except (binascii.Error, ValueError):
        raise ToolCallError(
            f"Argument {name!r} is not base64. A file whose content is text is given as "
            '{"text": "..."}.'
        ) from None
    return content, filename, media_type
