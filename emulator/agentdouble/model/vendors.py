"""Whose wire form a request has, and refusals in the form of that vendor's errors."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from agentdouble.model import PREFIX

Vendor: TypeAlias = Literal["openai", "gemini", "anthropic"]

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
# Both vendors have /v1. Of Gemini are its other versions, methods of a model, and Vertex's paths.
_GEMINI_PATH = re.compile(
    rf"{PREFIX}/(?:v1(?:alpha|beta)\d*(?:/|$)|v1/(?:projects|publishers)/"
    r"|[^/]+/.*:[a-z]+[A-Z]?\w*$)"
)
_GEMINI_HEADERS = ("x-goog-api-key", "x-goog-api-client")


def vendor_of(connection: HTTPConnection) -> Vendor:
    """Return whose wire form a request has, by its path, and where paths are alike, its headers."""
    path: str = connection.scope["path"]
    if "anthropic-version" in connection.headers:
        return "anthropic"
    if any(name in connection.headers for name in _GEMINI_HEADERS):
        return "gemini"
    is_post = connection.scope.get("method") == "POST"  # a name of OpenAI's may have colons
    if _GEMINI_PATH.match(path) and (is_post or ":" not in path):
        return "gemini"
    return "gemini" if "key" in connection.query_params else "openai"


def render_error(
    connection: HTTPConnection, status: int, code: str, message: str, param: str | None = None
) -> Response:
    """Return an error; ``code`` and ``param``, the wrong field, stand only in OpenAI's form."""
    vendor = vendor_of(connection)
    error: dict[str, Any] = {"message": message}
    if vendor == "gemini":
        error |= {"code": status, "status": _STATUS.get(status, "INTERNAL")}
        return JSONResponse({"error": error}, status)
    if vendor == "anthropic":
        kind = "api_error" if status >= 500 else "invalid_request_error"
        error |= {"type": _ANTHROPIC_TYPES.get(status, kind)}
        return JSONResponse({"type": "error", "error": error}, status)
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error |= {"type": kind, "param": param, "code": code}
    return JSONResponse({"error": error}, status)
