"""A gateway's refusals in the shape that the clients of each surface read."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from agentdouble.errors import AccessError
from agentdouble.runtimes.authentication.naming import surface_of

_INVALID_REQUEST = -32600  # JSON-RPC


def render(error: AccessError, path: str) -> Response:
    """Return the answer to a request for ``path`` of a runtime that was refused."""
    headers = None if error.challenge is None else {"WWW-Authenticate": error.challenge}
    return JSONResponse(_body(error, path), error.status, headers)


def _body(error: AccessError, path: str) -> dict[str, object]:
    surface, message = surface_of(path), str(error)
    if surface == "mcp":
        failure = {"code": _INVALID_REQUEST, "message": message}
        return {"jsonrpc": "2.0", "id": None, "error": failure}
    if surface == "api":
        return {"detail": message}
    return {"error": {"message": message, "type": error.kind}}
