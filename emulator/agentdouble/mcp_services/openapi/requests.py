"""The request of a call: its URL, headers and body, from checked arguments."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.openapi import inputs
from agentdouble.mcp_services.openapi.definition import (
    DefinedBody,
    DefinedField,
    DefinedOperation,
    Parameter,
    Style,
)

Encode = Callable[[str], str]

_COOKIE = "!#$&'()*+-./:<=>?@[]^_`{|}~"
_EXACT = 2**53

_REPEATED = Style("form", explode=True)

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_LITERAL = "/:@!$&'()*+,;=~%[]"
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def encoded(text: str) -> str:
    """Percent-encode everything except RFC 3986's unreserved characters."""
    return quote(text, safe="")


def plain(text: str) -> str:
    """Return a text unchanged, for headers."""
    return text


def text_of(value: Any) -> str:
    """Return one value as text: a string unchanged, any other as JSON, 1.0 as 1."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def simple(value: Any, style: Style, encode: Encode) -> str:
    """Return a path's or a header's value."""
    if style.how == "json":
        return encode(text_of(value) if not isinstance(value, str) else json.dumps(value))
    return _joined(value, style, encode)


def in_cookie(text: str) -> str:
    """Percent-encode only what a cookie cannot carry, because many backends do not decode it."""
    return quote(text, safe=_COOKIE)


def pairs(name: str, value: Any, style: Style, encode: Encode = encoded) -> list[tuple[str, str]]:
    """Return a value as the encoded pairs of a query, a form or a cookie."""
    if value is None:
        return []
    if style.how == "json":
        return [(encoded(name), simple(value, style, encode))]
    if style.how == "deepObject":
        return [(encoded(key), encode(text)) for key, text in deep(name, value)]
    if style.explode and isinstance(value, dict):
        return [
            (encoded(key), encode(text_of(item))) for key, item in value.items() if item is not None
        ]
    if style.explode and isinstance(value, list):
        return [(encoded(name), encode(text_of(item))) for item in value if item is not None]
    written = _joined(value, style, encode)
    return [(encoded(name), written)] if written or not isinstance(value, (dict, list)) else []


def deep(name: str, value: Any) -> list[tuple[str, str]]:
    """Return the pairs of a deepObject, not yet encoded: ``a[b]=1``, in arrays ``a[0]=1``."""
    if isinstance(value, dict):
        below: Any = value.items()
    elif isinstance(value, list):
        below = enumerate(value)
    else:
        return [] if value is None else [(name, text_of(value))]
    return [pair for key, item in below for pair in deep(f"{name}[{key}]", item)]


def _joined(value: Any, style: Style, encode: Encode) -> str:
    """Return a value as one text, with a delimiter between its members."""
    between = style.delimiter if encode is plain else quote(style.delimiter, safe=",")
    if isinstance(value, dict):
        encoded_pairs = [
            (encode(key), encode(text_of(item))) for key, item in value.items() if item is not None
        ]
        if style.explode:
            return between.join(f"{key}={item}" for key, item in encoded_pairs)
        return between.join(part for pair in encoded_pairs for part in pair)
    if isinstance(value, list):
        return between.join(encode(text_of(item)) for item in value if item is not None)
    return encode("" if value is None else text_of(value))


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
        return RequestContent(body.media_type, json.dumps(value, separators=(",", ":")).encode())
    if body.kind == "raw":
        return _raw(body, value)
    return _form(body, value)


def _raw(body: DefinedBody, value: Any) -> RequestContent:
    if inputs.is_text(body.media_type):
        return RequestContent(body.media_type, text_of(value).encode())
    content, _, media_type = _file(body.argument or "body", value)
    return RequestContent(media_type or body.media_type, content)


def _form(body: DefinedBody, values: Any) -> RequestContent:
    if not isinstance(values, dict):
        raise ToolCallError(f"Argument {body.argument!r}: a form is an object.")
    if body.kind == "multipart":
        parts = [
            part
            for name, value in values.items()
            for part in _parts(name, value, body.fields.get(name, DefinedField()))
        ]
        return RequestContent(files=parts) if parts else RequestContent()
    encoded = []
    for name, value in values.items():
        style = body.fields.get(name, DefinedField()).style
        if style is None:
            style = Style("json") if isinstance(value, dict) else _REPEATED
        encoded += [f"{key}={text}" for key, text in pairs(name, value, style)]
    return RequestContent(body.media_type, "&".join(encoded).encode("ascii"))


def _parts(name: str, value: Any, field: DefinedField) -> list[Any]:
    """Return the parts of one field, in the form that httpx takes."""
    if value is None:
        return []
    if field.is_file:
        files = value if isinstance(value, list) else [value]
        return [_file_part(name, file) for file in files]
    if field.style is not None:  # a multipart body does not encode its texts
        encoded_pairs = pairs(name, value, field.style)
        return [_text_part(unquote(key), unquote(text)) for key, text in encoded_pairs]
    if isinstance(value, list):
        return [part for item in value for part in _parts(name, item, field)]
    return [_text_part(name, text_of(value), is_json=isinstance(value, dict))]


def _text_part(name: str, text: str, *, is_json: bool = False) -> Any:
    return (name, (None, text.encode(), "application/json") if is_json else (None, text.encode()))


def _file_part(name: str, value: Any) -> Any:
    content, filename, media_type = _file(name, value)
    content_type = media_type or mimetypes.guess_type(filename)[0]
    return (name, (filename, content, content_type or "application/octet-stream"))


def _file(name: str, value: Any) -> tuple[bytes, str, str | None]:
    """Return a file's bytes, its name, and its media type if the caller gave one."""
    fields = value if isinstance(value, dict) else {"base64": value}
    media_type = fields.get("media_type")
    if media_type is not None and not inputs.is_media_type(media_type):
        raise ToolCallError(f"Argument {name!r}: {media_type!r} is not a media type.")
    filename = str(fields.get("filename") or name)
    if "text" in fields:
        return str(fields["text"]).encode(), filename, media_type
    try:
        content = base64.b64decode(str(fields.get("base64", "")), validate=True)
    except (binascii.Error, ValueError):
        raise ToolCallError(
            f"Argument {name!r} is not base64. A file whose content is text is given as "
            '{"text": "..."}.'
        ) from None
    return content, filename, media_type


@dataclass(frozen=True)
class ApiRequest:
    """A request without the service's credential; ``files`` are the parts of a multipart body."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    content: bytes | None = None
    files: list[Any] | None = None


def build(operation: DefinedOperation, arguments: Mapping[str, Any], base_url: str) -> ApiRequest:
    """Return the request; raise ToolCallError with the argument that cannot be sent."""
    try:
        return _built(operation, arguments, base_url)
    except UnicodeEncodeError:
        raise ToolCallError("An argument has half of a character (a lone surrogate).") from None


def _built(operation: DefinedOperation, arguments: Mapping[str, Any], base_url: str) -> ApiRequest:
    path, _, query = operation.path.partition("#")[0].partition("?")
    pairs = [f"{key}={value}" for key, value in _query(operation, arguments)]
    full_query = "&".join([*([quote(query, safe=_LITERAL + "?")] if query else []), *pairs])
    headers = [*_headers(operation, arguments), (b"Accept", operation.accept.encode("ascii"))]
    body = of(operation.body, arguments)
    if body.media_type:
        headers.append((b"Content-Type", body.media_type.encode("ascii")))
    return ApiRequest(
        operation.method,
        base_url + _path(path, operation, arguments) + (f"?{full_query}" if full_query else ""),
        headers,
        body.content,
        body.files,
    )


def _given(
    operation: DefinedOperation, arguments: Mapping[str, Any], where: str
) -> list[tuple[Parameter, Any]]:
    return [
        (parameter, arguments[parameter.argument])
        for parameter in operation.parameters
        if parameter.where == where and parameter.argument in arguments
    ]


def _path(template: str, operation: DefinedOperation, arguments: Mapping[str, Any]) -> str:
    written = {
        parameter.name: _path_value(parameter, value)
        for parameter, value in _given(operation, arguments, "path")
    }
    parts = []
    for segment in template.split("/"):
        names = _PLACEHOLDER.findall(segment)
        filled = "".join(
            written[part] if index % 2 else quote(part, safe=_LITERAL)
            for index, part in enumerate(_PLACEHOLDER.split(segment))
        )
        if names and _leaves(filled):
            raise ToolCallError(f"Argument {names[0]!r}: {unquote(filled)!r} would leave the path.")
        parts.append(filled)
    return "/".join(parts)


def _path_value(parameter: Parameter, value: Any) -> str:
    written = simple(value, parameter.style, encoded)
    if not written.strip("."):
        raise ToolCallError(
            f"Argument {parameter.argument!r}: a part of a path cannot be empty or only dots."
        )
    return written


def _leaves(segment: str) -> bool:
    """Return whether a segment is a step up when a server decodes it once or twice."""
    decoded = unquote(unquote(segment))
    # Such a path is refused, not only encoded, because some servers decode a path before they
    # check it.
    return any(part in (".", "..") for part in re.split(r"[/\\]", decoded))


def _query(operation: DefinedOperation, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        pair
        for parameter, value in _given(operation, arguments, "query")
        for pair in pairs(parameter.name, value, parameter.style)
    ]


def _headers(
    operation: DefinedOperation, arguments: Mapping[str, Any]
) -> list[tuple[bytes, bytes]]:
    headers = [
        (parameter.name.encode("ascii"), _header_value(parameter, value))
        for parameter, value in _given(operation, arguments, "header")
        if value is not None
    ]
    cookies = [
        f"{key}={text}"
        for parameter, value in _given(operation, arguments, "cookie")
        for key, text in pairs(parameter.name, value, parameter.style, in_cookie)
    ]
    return [*headers, *([(b"Cookie", "; ".join(cookies).encode())] if cookies else [])]


def _header_value(parameter: Parameter, value: Any) -> bytes:
    written = simple(value, parameter.style, plain)
    if _CONTROL.search(written):
        raise ToolCallError(
            f"Argument {parameter.argument!r}: a header cannot have line breaks or other control "
            "characters."
        )
    return written.strip().encode()
