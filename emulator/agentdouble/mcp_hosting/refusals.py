"""Refusals of requests that do not reach an MCP server: JSON-RPC errors without an id."""

from __future__ import annotations

from typing import Any, Literal

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from typing_extensions import NotRequired, TypedDict

from agentdouble import ledger
from agentdouble.guard import Refusal
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import EVENTS

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603


class JsonRpcErrorFields(TypedDict):
    """The code and the message of a JSON-RPC error."""

    code: int
    message: str
    data: NotRequired[Any]


class JsonRpcError(TypedDict):
    """A JSON-RPC error; one that belongs to no particular request has no id."""

    jsonrpc: Literal["2.0"]
    id: int | str | None
    error: JsonRpcErrorFields


_MESSAGE = dict[str, Any]
_ERRORS = (401, 404, 405, 406, 415)
OPERATIONS = {
    "POST": Operation(
        summary="Send a message of MCP: a request, a notification or an answer",
        answers=(Answer(_MESSAGE), Answer(str, media_type=EVENTS), Answer(None, 202)),
        body=_MESSAGE,
        errors=_ERRORS,
        refused=JsonRpcError,
    ),
    "GET": Operation(
        summary="Listen to an MCP session",
        answers=(Answer(str, media_type=EVENTS),),
        errors=_ERRORS,
        refused=JsonRpcError,
    ),
    "DELETE": Operation(
        summary="End an MCP session",
        answers=(Answer(None), Answer(None, 204)),
        errors=_ERRORS,
        refused=JsonRpcError,
    ),
}


def failure(status: int, message: str, code: int = INVALID_REQUEST, **data: str) -> Response:
    """Return a JSON-RPC error that belongs to no particular request."""
    error = {"code": code, "message": message, **({"data": data} if data else {})}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)


def unauthorized(name: str, presented: str | None) -> Response:
    """Refuse a request without a key of its service, as the ledger decides (U-MCP-UNAUTHORIZED)."""
    what = "has no API key" if presented is None else "has a wrong API key"
    message = f"The request {what}: send 'Authorization: Bearer <a key of the service {name!r}>'."
    if ledger.choose("U-MCP-UNAUTHORIZED") == "403":
        return failure(403, message)
    answer = failure(401, message)
    error = "" if presented is None else ' error="invalid_token"'
    answer.headers["WWW-Authenticate"] = f"Bearer{error}"
    return answer


def is_mcp(connection: HTTPConnection) -> bool:
    """Return whether a request is for an MCP server, by its path."""
    path: str = connection.scope["path"]
    return path == "/mcp" or path.startswith("/mcp/")


def render_refusal(refusal: Refusal) -> Response:
    """Return the guard's refusal as a JSON-RPC error."""
    code = INTERNAL_ERROR if refusal.status == 500 else INVALID_REQUEST
    answer = failure(refusal.status, refusal.message, code, type=refusal.kind)
    if refusal.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
