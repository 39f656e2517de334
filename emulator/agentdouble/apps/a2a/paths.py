"""The paths at which an A2A application answers, and its media types; needs no SDK."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from agentdouble.server.guard import Refusal

CARD = "/.well-known/agent-card.json"
LEGACY_CARD = "/.well-known/agent.json"
VERSION_HEADER = "A2A-Version"
MODES = ("text/plain", "application/json")
_BELOW = ("/tasks", "/v1/tasks")
_EXACT = frozenset(
    {
        CARD,
        LEGACY_CARD,
        "/message:send",
        "/message:stream",
        "/extendedAgentCard",
        "/v1/message:send",
        "/v1/message:stream",
        "/v1/card",
    }
)
# REST in version 0.3, which is refused by name
LEGACY_REST = (
    *("/v1/card", "/v1/message:send", "/v1/message:stream"),
    *("/v1/tasks", "/v1/tasks/{rest:path}"),
)

# the routes of an application at the root of a double, in addition to POST /
PATTERNS = tuple(
    pattern for path in (*_BELOW, *sorted(_EXACT)) for pattern in (path, f"{path}/{{rest:path}}")
)
INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
_REST = ("/tasks", "/message:", "/extendedAgentCard", "/v1/card", "/.well-known/")
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_STATUSES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    413: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
}
KIND = "a2a_tasks"  # the kind of the task records in a state


def is_a2a(connection: HTTPConnection) -> bool:
    """Return whether a request's path belongs to the A2A application at the root."""
    path: str = connection.scope["path"].rstrip("/")
    return path in _EXACT or any(path == root or path.startswith(f"{root}/") for root in _BELOW)


def render_refusal(connection: HTTPConnection, refusal: Refusal) -> Response:
    """Return the response of a refusal, in the format of the binding that was called."""
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
    return JSONResponse(_details(connection, refusal), refusal.status, headers)


def _details(connection: HTTPConnection, refusal: Refusal) -> dict[str, Any]:
    path: str = connection.scope["path"]
    if not any(sign in path for sign in _REST):
        data = {"type": refusal.kind}
        code = INTERNAL_ERROR if refusal.status == 500 else INVALID_REQUEST
        error = {"code": code, "message": refusal.message, "data": data}
        return {"jsonrpc": "2.0", "id": None, "error": error}
    status = _STATUSES.get(refusal.status, "FAILED_PRECONDITION")
    reason = re.sub("(?<=.)(?=[A-Z])", "_", refusal.kind).upper()
    detail = {"@type": _ERROR_INFO, "reason": reason, "domain": "agentdouble", "metadata": {}}
    error = {"code": refusal.status, "status": status, "message": refusal.message}
    return {"error": {**error, "details": [detail]}}
