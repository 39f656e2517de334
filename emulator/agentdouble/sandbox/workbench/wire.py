"""Requests and answers of the public sandbox's routes (data plane, section 1)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble.disconnects import EventStreamResponse, cancel_on_disconnect
from agentdouble.openapi import Answer as Described
from agentdouble.openapi import Operation
from agentdouble.openapi.operation import like
from agentdouble.sandbox import json_bodies

_Model = TypeVar("_Model", bound="RequestBody")

DONE = "Operation successful"


class RequestBody(BaseModel):
    """The JSON body of a request; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True)


class Envelope(TypedDict):
    """An answer of the public sandbox; ``success`` is false if the operation failed."""

    success: bool
    message: str
    data: Any
    hint: None


class WrongField(TypedDict):
    """A field of a request that is wrong."""

    type: str
    loc: list[str | int]
    msg: str


class WrongFields(TypedDict):
    """The fields of a request that are wrong, in FastAPI's format."""

    detail: list[WrongField]


@dataclass(frozen=True)
class Answer:
    """The result of an operation, with a message about it."""

    data: Any
    message: str = DONE
    success: bool = True


class FailedError(Exception):
    """A failed operation: the answer is HTTP 200 with ``success`` false, and ``data``."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.data = data


EventsThenAnswer = AsyncGenerator[Mapping[str, Any] | Answer, None]


class _Lines(EventStreamResponse):
    """A response that sends each event at once, as one line of JSON."""

    media_type = "application/x-ndjson"


def render(answer: Answer, status: int = 200) -> Response:
    """Return an answer in the public sandbox's envelope."""
    return JSONResponse(_envelope(answer), status)


def _envelope(answer: Answer) -> Envelope:
    return {
        "success": answer.success,
        "message": answer.message,
        "data": answer.data,
        "hint": None,
    }


async def failed(_request: Request, error: Exception) -> Response:
    """Return the answer to an operation that failed."""
    assert isinstance(error, FailedError)
    return render(Answer(error.data, str(error), success=False))


async def invalid(_request: Request, error: Exception) -> Response:
    """Return the answer to an invalid body, in FastAPI's format."""
    assert isinstance(error, ValidationError)
    detail = [
        {"type": one["type"], "loc": ["body", *one["loc"]], "msg": one["msg"]}
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return JSONResponse({"detail": detail}, 422)


async def unrouted(_request: Request, error: Exception) -> Response:
    """Return the answer to an unknown path or method."""
    assert isinstance(error, HTTPException)
    answer = render(Answer(None, error.detail, success=False), error.status_code)
    answer.headers.update(error.headers or {})
    return answer


def reading(model: type[BaseModel]) -> Operation:
    """Return the description of an endpoint that reads a body and answers with an envelope."""
    return Operation(answers=(Described(Envelope),), body=model)


def post(path: str, model: type[_Model], operation: Callable[[_Model], Awaitable[Any]]) -> Route:
    """Return a route that reads a JSON body, calls the operation and renders the result."""

    @like(operation, reading(model))
    async def endpoint(request: Request) -> Response:
        body = model.model_validate_json(json_bodies.checked(await request.body()) or b"{}")
        return _rendered(await operation(body))

    return Route(path, endpoint, methods=["POST"])


def cancellable(
    path: str, model: type[_Model], operation: Callable[[_Model], Coroutine[Any, Any, Any]]
) -> Route:
    """Return a route as ``post`` does, whose operation is cancelled if the client disconnects.

    This stops the command at each hop: if the client disconnects, the double ends its own request,
    and the workbench notices that.
    """

    @like(operation, reading(model))
    async def endpoint(request: Request) -> Response:
        body = model.model_validate_json(json_bodies.checked(await request.body()) or b"{}")
        try:
            return _rendered(await cancel_on_disconnect(request.receive, operation(body)))
        except ClientDisconnect:  # no client is left to receive the answer
            return Response(status_code=400)

    return Route(path, endpoint, methods=["POST"])


def streamed(
    path: str, model: type[_Model], operation: Callable[[_Model], Awaitable[EventsThenAnswer]]
) -> Route:
    """Return a route as ``post`` does that sends events before its answer, one in each line."""

    async def endpoint(request: Request) -> Response:
        body = model.model_validate_json(json_bodies.checked(await request.body()) or b"{}")
        return _Lines(_lines(await operation(body)))

    return Route(path, endpoint, methods=["POST"])


async def _lines(events: EventsThenAnswer) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        async for event in events:
            said = _envelope(event) if isinstance(event, Answer) else event
            yield f"{json.dumps(said)}\n"


def without_body(path: str, operation: Callable[[Request], Awaitable[Any]], method: str) -> Route:
    """Return a route that calls the operation and renders the result."""

    @like(operation, Operation(answers=(Described(Envelope),)))
    async def endpoint(request: Request) -> Response:
        return _rendered(await operation(request))

    return Route(path, endpoint, methods=[method])


def _rendered(found: Any) -> Response:
    if isinstance(found, Response):
        return found
    return render(found if isinstance(found, Answer) else Answer(found))
