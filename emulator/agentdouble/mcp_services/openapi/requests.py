"""The request of a call: its URL, headers and body, from checked arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.openapi import request_bodies
from agentdouble.mcp_services.openapi.definition import DefinedOperation, Parameter
from agentdouble.mcp_services.openapi.serialization import (
    in_cookie,
    in_path,
    pairs,
    plain,
    single,
)

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_LITERAL = "/:@!$&'()*+,;=~%[]"
_UNDEFINED: tuple[Any, ...] = ([], {})  # in RFC 6570
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


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
    written = {
        parameter.name: in_path(parameter.name, value, parameter.style)
        for parameter, value in _given(operation, arguments, "path")
    }
    pairs = [f"{key}={value}" for key, value in _query(operation, arguments)]
    literal = _filled(query, written, _LITERAL + "?")
    full_query = "&".join([*([literal] if literal else []), *pairs])
    body = request_bodies.of(operation.body, arguments)
    headers = _headers(operation, arguments)
    given = {name.lower() for name, _ in headers}
    if b"accept" not in given:
        headers.append((b"Accept", operation.accept.encode("ascii")))
    if body.files:  # only what writes the parts knows their boundary
        headers = [header for header in headers if header[0].lower() != b"content-type"]
    elif body.media_type and b"content-type" not in given:
        headers.append((b"Content-Type", body.media_type.encode("ascii")))
    return ApiRequest(
        operation.method,
        base_url + _path(path, operation, written) + (f"?{full_query}" if full_query else ""),
        headers,
        body.content,
        body.files,
    )


def _given(
    operation: DefinedOperation, arguments: Mapping[str, Any], where: str
) -> list[tuple[Parameter, Any]]:
    given = [
        (parameter, arguments[parameter.argument])
        for parameter in operation.parameters
        if parameter.where == where and parameter.argument in arguments
    ]
    for parameter, value in given:
        if parameter.style.how == "text" and isinstance(value, (dict, list)):
            raise ToolCallError(
                f"Argument {parameter.argument!r} is not written by a style: give it as text."
            )
    return given


def _path(template: str, operation: DefinedOperation, written: Mapping[str, str]) -> str:
    named = {it.name: it.argument for it in operation.parameters if it.where == "path"}
    parts = []
    for segment in template.split("/"):
        names = _PLACEHOLDER.findall(segment)
        for name in names:
            if not written[name].strip("."):
                raise ToolCallError(
                    f"Argument {named[name]!r}: a part of a path cannot be empty or only dots."
                )
        filled = _filled(segment, written, _LITERAL)
        if names and _leaves(filled):
            raise ToolCallError(f"Argument {names[0]!r}: {unquote(filled)!r} would leave the path.")
        parts.append(filled)
    return "/".join(parts)


def _filled(template: str, written: Mapping[str, str], literal: str) -> str:
    """Return a part of a path, or its query, with values in place of its placeholders."""
    return "".join(
        written[part] if index % 2 else quote(part, safe=literal)
        for index, part in enumerate(_PLACEHOLDER.split(template))
    )


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
    written = [
        (parameter.name.encode("ascii"), _header_value(parameter, value))
        for parameter, value in _given(operation, arguments, "header")
        if value is not None and (parameter.style.how == "json" or value not in _UNDEFINED)
    ]
    headers = [(name, value) for name, value in written if name.lower() != b"cookie"]
    cookies = [value for name, value in written if name.lower() == b"cookie"] + [
        f"{key}={text}".encode()
        for parameter, value in _given(operation, arguments, "cookie")
        for key, text in pairs(parameter.name, value, parameter.style, in_cookie)
    ]
    return [*headers, *([(b"Cookie", b"; ".join(cookies))] if cookies else [])]


def _header_value(parameter: Parameter, value: Any) -> bytes:
    written = single(value, parameter.style, plain)
    if _CONTROL.search(written):
        raise ToolCallError(
            f"Argument {parameter.argument!r}: a header cannot have line breaks or other control "
            "characters."
        )
    return written.strip().encode()
