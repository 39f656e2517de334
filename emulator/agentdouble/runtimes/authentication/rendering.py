"""A gateway's refusals in the shape that the clients of each surface read."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from agentdouble.errors import AccessError
from agentdouble.runtimes.authentication.naming import surface_of

_INVALID_REQUEST = -32600  # JSON-RPC
_OF_A2A = {"TaskNotFound": -32001, "UnsupportedOperation": -32004}


def render(error: AccessError, path: str) -> Response:
    """Return the answer to a request for ``path`` of a runtime that was refused."""
    if error.call is not None and error.kind in _OF_A2A:
        return JSONResponse(_failure(_OF_A2A[error.kind], str(error), error.call))
    headers = None if error.challenge is None else {"WWW-Authenticate": error.challenge}
    return JSONResponse(_body(error, path), error.status, headers)


def _body(error: AccessError, path: str) -> dict[str, Any]:
    surface, message = surface_of(path), str(error)
    if surface == "mcp":
        return _failure(_INVALID_REQUEST, message, None)
    if surface == "api":
        return {"detail": message}
    return {"error": {"message": message, "type": error.kind}}


def _failure(code: int, message: str, call: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call, "error": {"code": code, "message": message}}
