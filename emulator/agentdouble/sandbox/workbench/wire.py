"""Requests and answers of the public sandbox's routes (data plane, section 1), and their paths."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble.openapi import Answer as Described
from agentdouble.openapi import Operation
from agentdouble.openapi.operation import like
from agentdouble.server.disconnects import cancel_on_disconnect

Model = TypeVar("Model", bound="RequestBody")

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
class WorkbenchAnswer:
    """The result of an operation, with a message about it."""

    data: Any
    message: str = DONE


class FailedError(Exception):
    """A failed operation: the answer is HTTP 200 with ``success`` false, and ``data``."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.data = data


def envelope(
    data: object,
    message: str = DONE,
    *,
    success: bool = True,
    status: int = 200,
    extra: Mapping[str, object] | None = None,
) -> Response:
    """Return an answer in the public sandbox's envelope; ``extra`` holds further fields."""
    document = {"success": success, "message": message, "data": data, "hint": None, **(extra or {})}
    return JSONResponse(document, status)


async def failed(_request: Request, error: Exception) -> Response:
    """Return the answer to an operation that failed."""
    assert isinstance(error, FailedError)
    return envelope(error.data, str(error), success=False)


async def invalid(_request: Request, error: Exception) -> Response:
    """Return the answer to an invalid body."""
    assert isinstance(error, ValidationError)
    return wrong_fields(error, "body")


def wrong_fields(error: ValidationError, location: str) -> Response:
    """Return the answer to an invalid body or query, in FastAPI's format."""
    detail = [
        {"type": field["type"], "loc": [location, *field["loc"]], "msg": field["msg"]}
        for field in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return JSONResponse({"detail": detail}, 422)


async def unrouted(_request: Request, error: Exception) -> Response:
    """Return the answer to an unknown path or method."""
    assert isinstance(error, HTTPException)
    answer = envelope(None, error.detail, success=False, status=error.status_code)
    answer.headers.update(error.headers or {})
    return answer


def reading(model: type[BaseModel]) -> Operation:
    """Return the description of an endpoint that reads a body and answers with an envelope."""
    return Operation(answers=(Described(Envelope),), body=model)


async def read_body(request: Request, model: type[Model]) -> Model:
    """Return the body of a request; raise pydantic's ValidationError."""
    return model.model_validate_json(await request.body() or b"{}")


async def run_for_client(request: Request, work: Coroutine[Any, Any, Any]) -> Response:
    """Return the rendered result of ``work``, which is cancelled if the client disconnects.

    This stops a command at each hop: if the client disconnects, the double ends its own request,
    and the workbench notices that.
    """
    try:
        return _rendered(await cancel_on_disconnect(request.receive, work))
    except ClientDisconnect:  # no client is left to receive the answer
        return Response(status_code=400)


async def until_one_ends(*work: Coroutine[Any, Any, object]) -> None:
    """Do several things at once until one of them ends; raise its error."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def post(
    path: str, model: type[Model], operation: Callable[[Model], Coroutine[Any, Any, Any]]
) -> Route:
    """Return a route that reads a JSON body, calls the operation and renders the result."""

    @like(operation, reading(model))
    async def endpoint(request: Request) -> Response:
        return await run_for_client(request, operation(await read_body(request, model)))

    return Route(path, endpoint, methods=["POST"])


def without_body(
    path: str, operation: Callable[[Request], Coroutine[Any, Any, Any]], method: str
) -> Route:
    """Return a route that calls the operation and renders the result."""

    @like(operation, Operation(answers=(Described(Envelope),)))
    async def endpoint(request: Request) -> Response:
        return _rendered(await operation(request))

    return Route(path, endpoint, methods=[method])


def _rendered(result: Any) -> Response:
    if isinstance(result, Response):
        return result
    if isinstance(result, WorkbenchAnswer):
        return envelope(result.data, result.message)
    return envelope(result)


# The paths come from a client and are unchecked at first, so they stay strings:
# ruff: noqa: PTH118


HOME = "/home/gem"
TMP = "/tmp"  # noqa: S108 (the session's own)

# for the double only: paths outside /v1 are not forwarded
DIRECTORY = "/directory"


class OutsideError(PermissionError):
    """A path outside the session's mapped directories."""


@dataclass(frozen=True)
class Paths:
    """Converts paths of the session to paths of this process, and back.

    If the session has no file system view of its own, ``mapped`` gives the real directory of each
    of the session's directories, and no path outside of these can be reached.
    """

    mapped: tuple[tuple[str, str], ...] = ()

    def real(self, path: str) -> str:
        """Return the real path of a path of the session; a relative path starts at home.

        Raises OutsideError, and ValueError for a path with a NUL character.
        """
        if "\0" in path:
            raise ValueError("a path must not contain NUL characters")
        absolute = os.path.normpath(os.path.join(HOME, path))
        if not self.mapped:
            return os.path.join(HOME, path)
        for prefix, directory in self.mapped:
            if _within(absolute, prefix):
                return self._checked(path, directory + absolute[len(prefix) :])
        raise OutsideError(13, f"only {HOME} and {TMP} are accessible", path)

    def _checked(self, path: str, real: str) -> str:
        resolved = os.path.realpath(real)
        if any(_within(resolved, os.path.realpath(directory)) for _, directory in self.mapped):
            return real
        raise OutsideError(13, f"it leads outside {HOME} and {TMP}", path)

    def shown(self, path: str) -> str:
        """Return the session's path for a path of this process."""
        for prefix, directory in self.mapped:
            for root in (directory, os.path.realpath(directory)):
                if _within(path, root):
                    return prefix + path[len(root) :]
        return path

    @property
    def home(self) -> str:
        """The real path of the session's home."""
        return self.real(HOME)


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
