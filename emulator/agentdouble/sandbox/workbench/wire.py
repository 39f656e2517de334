"""How the public sandbox's routes are asked and answer (data plane, section 1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.attending import while_connected

_Model = TypeVar("_Model", bound="Asked")

DONE = "Operation successful"


class Asked(BaseModel):
    """The JSON body of a request; fields that nobody knows are left alone."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True)
class Answer:
    """What an operation came to, with a sentence about it."""

    data: Any
    message: str = DONE
    success: bool = True


class FailedError(Exception):
    """An operation that cannot be done: HTTP 200 with ``success`` false, and ``data``."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.data = data


def render(answer: Answer, status: int = 200) -> Response:
    """Return an answer as the public sandbox's envelope."""
    envelope = {
        "success": answer.success,
        "message": answer.message,
        "data": answer.data,
        "hint": None,
    }
    return JSONResponse(envelope, status)


async def failed(_request: Request, error: Exception) -> Response:
    """Return the answer to an operation that failed."""
    assert isinstance(error, FailedError)
    return render(Answer(error.data, str(error), success=False))


async def invalid(_request: Request, error: Exception) -> Response:
    """Return the answer to a body that is not what its route takes, in FastAPI's shape."""
    assert isinstance(error, ValidationError)
    detail = [
        {"type": one["type"], "loc": ["body", *one["loc"]], "msg": one["msg"]}
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return JSONResponse({"detail": detail}, 422)


def post(path: str, asked: type[_Model], operation: Callable[[_Model], Awaitable[Any]]) -> Route:
    """Return a route that reads a JSON body, calls the operation and renders what it returns."""

    async def endpoint(request: Request) -> Response:
        body = asked.model_validate_json(await request.body() or b"{}")
        return _rendered(await operation(body))

    return Route(path, endpoint, methods=["POST"])


def awaited(
    path: str, asked: type[_Model], operation: Callable[[_Model], Coroutine[Any, Any, Any]]
) -> Route:
    """Return such a route whose operation is cancelled when its caller goes away."""

    async def endpoint(request: Request) -> Response:
        body = asked.model_validate_json(await request.body() or b"{}")
        try:
            return _rendered(await while_connected(request.receive, operation(body)))
        except ClientDisconnect:  # nobody is there to be answered
            return Response(status_code=400)

    return Route(path, endpoint, methods=["POST"])


def without_body(path: str, operation: Callable[[Request], Awaitable[Any]], method: str) -> Route:
    """Return a route that calls the operation and renders what it returns."""

    async def endpoint(request: Request) -> Response:
        return _rendered(await operation(request))

    return Route(path, endpoint, methods=[method])


def _rendered(found: Any) -> Response:
    if isinstance(found, Response):
        return found
    return render(found if isinstance(found, Answer) else Answer(found))
