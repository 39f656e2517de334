"""The body of a request: JSON, a form, a multipart form with files, or unchanged bytes."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.openapi import bodies, styles
from agentdouble.mcp_services.openapi.definition import Body, Field, Style

_REPEATED = Style("form", explode=True)


@dataclass(frozen=True)
class Content:
    """An encoded body; httpx chooses the boundary in the media type of ``files``."""

    media_type: str | None = None
    content: bytes | None = None
    files: list[Any] | None = None


def of(body: Body | None, arguments: Mapping[str, Any]) -> Content:
    """Return the body for the arguments."""
    if body is None:
        return Content()
    if body.argument is None:
        form = {name: arguments[one] for one, name in body.arguments.items() if one in arguments}
        return _form(body, form) if form else Content()
    if body.argument not in arguments:
        return Content()
    value = arguments[body.argument]
    if body.kind == "json":
        return Content(body.media_type, json.dumps(value, separators=(",", ":")).encode())
    if body.kind == "raw":
        return _raw(body, value)
    return _form(body, value)


def _raw(body: Body, value: Any) -> Content:
    if bodies.is_text(body.media_type):
        return Content(body.media_type, styles.text_of(value).encode())
    content, _, media_type = _file(body.argument or "body", value)
    return Content(media_type or body.media_type, content)


def _form(body: Body, values: Any) -> Content:
    if not isinstance(values, dict):
        raise ToolCallError(f"Argument {body.argument!r}: a form is an object.")
    if body.kind == "multipart":
        parts = [
            part
            for name, value in values.items()
            for part in _parts(name, value, body.fields.get(name, Field()))
        ]
        return Content(files=parts) if parts else Content()
    pairs = [
        f"{key}={text}"
        for name, value in values.items()
        for key, text in _fields(name, value, body.fields.get(name, Field()))
    ]
    return Content(body.media_type, "&".join(pairs).encode("ascii"))


def _fields(name: str, value: Any, field: Field) -> list[tuple[str, str]]:
    """Return the encoded pairs of one field; an object without a style is JSON."""
    if field.style is not None:
        return styles.pairs(name, value, field.style)
    if isinstance(value, dict):
        return styles.pairs(name, value, Style("json"))
    return styles.pairs(name, value, _REPEATED)


def _parts(name: str, value: Any, field: Field) -> list[Any]:
    """Return the parts of one field, in the form that httpx takes."""
    if value is None:
        return []
    if field.is_file:
        files = value if isinstance(value, list) else [value]
        return [_file_part(name, one) for one in files]
    if field.style is not None:
        return [_text_part(name, text) for name, text in _styled(name, value, field.style)]
    if isinstance(value, list):
        return [part for one in value for part in _parts(name, one, field)]
    return [_text_part(name, styles.text_of(value), is_json=isinstance(value, dict))]


def _styled(name: str, value: Any, style: Style) -> list[tuple[str, str]]:
    """Return the texts of a field with a style; a multipart body does not encode them."""
    return [(unquote(key), unquote(text)) for key, text in styles.pairs(name, value, style)]


def _text_part(name: str, text: str, *, is_json: bool = False) -> Any:
    return (name, (None, text.encode(), "application/json") if is_json else (None, text.encode()))


def _file_part(name: str, value: Any) -> Any:
    content, filename, media_type = _file(name, value)
    known = media_type or mimetypes.guess_type(filename)[0]
    return (name, (filename, content, known or "application/octet-stream"))


def _file(name: str, value: Any) -> tuple[bytes, str, str | None]:
    """Return a file's bytes, its name, and its media type if the caller gave one."""
    given = value if isinstance(value, dict) else {"base64": value}
    media_type = given.get("media_type")
    if media_type is not None and not bodies.is_media_type(media_type):
        raise ToolCallError(f"Argument {name!r}: {media_type!r} is no media type.")
    filename = str(given.get("filename") or name)
    if "text" in given:
        return str(given["text"]).encode(), filename, media_type
    try:
        content = base64.b64decode(str(given.get("base64", "")), validate=True)
    except (binascii.Error, ValueError):
        raise ToolCallError(
            f"Argument {name!r} is not base64. A file whose content is text is given as "
            '{"text": "..."}.'
        ) from None
    return content, filename, media_type
