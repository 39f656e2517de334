"""Refusals in the form of MCP: JSON-RPC errors that belong to no request."""

from __future__ import annotations

import re

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from agentdouble.core import ledger
from agentdouble.server.guard import Refusal

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603


def failure(status: int, message: str, code: int = INVALID_REQUEST, **data: str) -> Response:
    """Return a JSON-RPC error that belongs to no particular request."""
    error = {"code": code, "message": message, **({"data": data} if data else {})}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)


def unauthorized(name: str, presented: str | None) -> Response:
    """Refuse a request without a key of its service, as the ledger decides (U-MCP-UNAUTHORIZED)."""
    problem = "has no API key" if presented is None else "has a wrong API key"
    message = (
        f"The request {problem}: send 'Authorization: Bearer <a key of the service {name!r}>'."
    )
    if ledger.choose("U-MCP-UNAUTHORIZED") == "403":
        return failure(403, message)
    answer = failure(401, message)
    error = "" if presented is None else ' error="invalid_token"'
    answer.headers["WWW-Authenticate"] = f"Bearer{error}"
    return answer


_PATH = re.compile(r"(?:/runtimes/[^/]+)?/mcp(?:/|\Z)")


def is_mcp(connection: HTTPConnection) -> bool:
    """Return whether a path is that of an MCP server, including one below ``/runtimes``."""
    return _PATH.match(connection.scope["path"]) is not None


def render_refusal(refusal: Refusal) -> Response:
    """Return the guard's refusal as a JSON-RPC error."""
    code = INTERNAL_ERROR if refusal.status == 500 else INVALID_REQUEST
    answer = failure(refusal.status, refusal.message, code, type=refusal.kind)
    if refusal.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
