"""The query and the body of a request, checked."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from agentdouble.api_server.models import (
    CreateSession,
    Json,
    RunRequest,
    SaveArtifact,
    UpdateMemory,
    UpdateSession,
)
from agentdouble.core import strict_json
from agentdouble.errors import ApiError

T = TypeVar("T")

RUN: TypeAdapter[RunRequest] = TypeAdapter(RunRequest)
CREATE: TypeAdapter[CreateSession | None] = TypeAdapter(CreateSession | None)
STATE: TypeAdapter[Json | None] = TypeAdapter(Json | None)
UPDATE: TypeAdapter[UpdateSession] = TypeAdapter(UpdateSession)
ARTIFACT: TypeAdapter[SaveArtifact] = TypeAdapter(SaveArtifact)
MEMORY: TypeAdapter[UpdateMemory] = TypeAdapter(UpdateMemory)

_FLAG: TypeAdapter[bool] = TypeAdapter(bool)
_NUMBER: TypeAdapter[int] = TypeAdapter(int)


def flag(request: Request, name: str) -> bool:
    """Return a flag of the query, False if it is absent; raise ApiError for other values."""
    value = request.query_params.get(name)
    return value is not None and _validated(value, _FLAG, ("query", name))


def number(request: Request, name: str) -> int | None:
    """Return a number of the query, None if it is absent; raise ApiError for other values."""
    value = request.query_params.get(name)
    return None if value is None else _validated(value, _NUMBER, ("query", name))


async def required(request: Request, adapter: TypeAdapter[T]) -> T:
    """Return a request's body; raise ApiError if it is absent or wrong."""
    document = await _document(request)
    if document is None:
        raise ApiError(
            422, [{"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}]
        )
    return _validated(document, adapter)


async def optional(request: Request, adapter: TypeAdapter[T | None]) -> T | None:
    """Return a request's body, or None without one; raise ApiError if it is wrong."""
    document = await _document(request)
    return None if document is None else _validated(document, adapter)


def _validated(document: Any, adapter: TypeAdapter[T], where: tuple[str, ...] = ("body",)) -> T:
    try:
        return adapter.validate_python(document, from_attributes=True)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise ApiError(422, [{**e, "loc": (*where, *e["loc"])} for e in errors]) from None


async def _document(request: Request) -> Any:
    body = await request.body()
    if not body:
        return None
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    main, _, sub = content_type.partition("/")
    if main != "application" or not (sub == "json" or sub.endswith("+json")):
        return body.decode("utf-8", "replace")  # not an object: validation refuses it
    try:
        return await strict_json.read(body, surrogates=True)
    except json.JSONDecodeError as error:
        raise ApiError(
            422,
            [
                {
                    "type": "json_invalid",
                    "loc": ("body", error.pos),
                    "msg": "JSON decode error",
                    "input": {},
                    "ctx": {"error": error.msg},
                }
            ],
        ) from None
    except (ValueError, RecursionError):
        raise ApiError(400, "There was an error parsing the body") from None
