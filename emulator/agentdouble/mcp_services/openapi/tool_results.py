"""The results of a tool, made from an API's answers."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import mcp.types
import pydantic_core

from agentdouble import strict_json
from agentdouble.mcp_services.openapi import bodies

if TYPE_CHECKING:
    from agentdouble.mcp_services.openapi.backend import Answer

LONGEST_ERROR = 4000  # characters
LONGEST_STRUCTURED = 1024**2  # characters of JSON that is read, which holds up everybody else
_SHORTEST_SECRET = 6  # shorter secrets may be ordinary words


def result(answer: Answer, secrets: Iterable[str], name: str) -> mcp.types.CallToolResult:
    """Return the result of the tool ``name``; its errors do not show ``secrets``."""
    if answer.status >= 300:
        return error(_refusal(answer, secrets))
    if not answer.content or (_says_json(answer) and not answer.content.strip()):
        return _text(f"HTTP {answer.status} {_phrase(answer.status)}: an answer without a body")
    if _says_json(answer):
        return _json(answer)
    if answer.media_type and not bodies.is_text(answer.media_type):
        return _binary(answer, name)
    return _text_or_binary(answer, name)


def _says_json(answer: Answer) -> bool:
    return bool(answer.media_type) and bodies.is_json(answer.media_type)


def error(message: str) -> mcp.types.CallToolResult:
    """Return a result that is an error with this message."""
    return mcp.types.CallToolResult(content=[mcp.types.TextContent(text=message)], is_error=True)


def _text(text: str, structured: Any = None) -> mcp.types.CallToolResult:
    return mcp.types.CallToolResult(
        content=[mcp.types.TextContent(text=text)], structured_content=structured
    )


def _refusal(answer: Answer, secrets: Iterable[str]) -> str:
    text = _decoded(answer, "replace").strip() or _phrase(answer.status)
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    if len(text) > LONGEST_ERROR:
        text = f"{text[:LONGEST_ERROR]}... ({len(text)} characters)"
    return f"HTTP {answer.status}: {text}"


def _json(answer: Answer) -> mcp.types.CallToolResult:
    text = _decoded(answer, "replace")
    if len(text) > LONGEST_STRUCTURED:
        return _text(text)
    try:
        value = strict_json.loads(text)
    except (ValueError, RecursionError):
        return error(f"The API's answer says that it is JSON, and is not: {text[:200]!r}")
    return _text(text, value if isinstance(value, dict) and _can_be_sent(value) else None)


def _can_be_sent(value: Any) -> bool:
    """Return whether a value can be sent: lone surrogates cannot, nor can deep nesting."""
    try:
        pydantic_core.to_json(value)
    except (ValueError, RecursionError):  # its serialization error is a ValueError
        return False
    return True


def _text_or_binary(answer: Answer, name: str) -> mcp.types.CallToolResult:
    try:
        return _text(_decoded(answer, "strict"))
    except UnicodeDecodeError:
        if answer.media_type:
            return _text(_decoded(answer, "replace"))
        return _binary(answer, name)


def _binary(answer: Answer, name: str) -> mcp.types.CallToolResult:
    data = base64.b64encode(answer.content).decode()
    kind = answer.media_type or "application/octet-stream"
    block: mcp.types.ContentBlock
    if kind.startswith("image/") and not kind.endswith("+xml"):
        block = mcp.types.ImageContent(data=data, mime_type=kind)
    elif kind.startswith("audio/"):
        block = mcp.types.AudioContent(data=data, mime_type=kind)
    else:
        contents = mcp.types.BlobResourceContents(
            uri=f"tool://{name}/answer", mime_type=kind, blob=data
        )
        block = mcp.types.EmbeddedResource(resource=contents)
    return mcp.types.CallToolResult(content=[block])


def _decoded(answer: Answer, errors: str) -> str:
    try:
        return answer.content.decode(answer.charset, errors)
    except LookupError:
        return answer.content.decode("utf-8", errors)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
