"""What an endpoint says of itself beside its docstring, and the operations that routes serve."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from starlette.routing import BaseRoute, Mount, Route

F = TypeVar("F", bound=Callable[..., Any])

JSON = "application/json"
EVENTS = "text/event-stream"
TEXT = "text/plain"

_ATTRIBUTE = "__openapi__"

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True)
class Answer:
    """A successful answer: its type, None if it has no body, its status and its media type."""

    type: Any
    status: int | Literal["default"] = 200
    media_type: str = JSON


@dataclass(frozen=True)
class Operation:
    """The types of an endpoint, from which pydantic makes JSON Schema; ``Any`` is any JSON.

    ``body`` may be left out if it is ``optional``. ``query`` is a TypedDict or a model with a field
    for each parameter.
    """

    answers: Sequence[Answer] = (Answer(Any),)
    body: Any = None
    optional: bool = False
    body_type: str = JSON
    query: Any = None
    summary: str | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Format:
    """What the operations of a surface have in common.

    ``error`` is the type of its errors. ``security`` are names of security schemes, one of which a
    request needs. ``query`` are parameters of every operation.
    """

    tag: str
    error: Any = dict[str, Any]
    security: Sequence[str] = ()
    query: Any = None


# An operation, one for each method, or a function of the instance to which the endpoint belongs.
Described: TypeAlias = (
    Operation | Callable[[Any], Operation] | Mapping[str, Operation | Callable[[Any], Operation]]
)


def operation(answer: Any = Any, **fields: Any) -> Callable[[F], F]:
    """Describe an endpoint; ``answer`` is the type of its JSON, or one Answer, or a tuple of them.

    The other arguments are fields of Operation.
    """
    if isinstance(answer, Answer):
        answers: Sequence[Answer] = (answer,)
    else:
        answers = answer if isinstance(answer, tuple) else (Answer(answer),)
    return described(Operation(answers=answers, **fields))


def described(description: Described) -> Callable[[F], F]:
    """Describe an endpoint."""

    def describe(endpoint: F) -> F:
        setattr(endpoint, _ATTRIBUTE, description)
        return endpoint

    return describe


def hidden(endpoint: F) -> F:
    """Leave an endpoint out of the document, because it refuses every request."""
    return described(Operation(hidden=True))(endpoint)


def operation_of(endpoint: Any, method: str) -> Operation:
    """Return the description of an endpoint; without one it takes and answers any JSON."""
    description = getattr(endpoint, _ATTRIBUTE, None)
    if isinstance(description, Mapping):
        description = description[method]
    if callable(description):
        description = description(endpoint.__self__)
    return description if isinstance(description, Operation) else Operation()


def methods_of(endpoint: Any) -> Sequence[str]:
    """Return the methods that an ASGI application describes, none if it describes nothing."""
    description = getattr(endpoint, _ATTRIBUTE, None)
    return tuple(description) if isinstance(description, Mapping) else ()


def like(original: Any, default: Operation) -> Callable[[F], F]:
    """Describe an endpoint that wraps a function: by the function, or by ``default``."""

    def describe(endpoint: F) -> F:
        endpoint.__doc__ = original.__doc__
        return described(getattr(original, _ATTRIBUTE, default))(endpoint)

    return describe


class Served(NamedTuple):
    """An operation that is served: a method at a path, and the endpoint that answers."""

    method: str
    path: str
    endpoint: Any


@runtime_checkable
class LateRoutes(Protocol):
    """An ASGI application that loads its routes only when they are asked for."""

    async def late_routes(self) -> Sequence[BaseRoute]: ...


async def served(routes: Iterable[BaseRoute], prefix: str = "") -> list[Served]:
    """Return the operations of routes in their order; the first one with a path answers.

    WebSockets are left out, because OpenAPI cannot describe them.
    """
    operations: dict[tuple[str, str], Served] = {}
    for route in routes:
        for operation in await _behind(route, prefix):
            operations.setdefault((operation.method, operation.path), operation)
    return [
        operation
        for operation in operations.values()
        if not operation_of(operation.endpoint, operation.method).hidden
    ]


async def _behind(route: BaseRoute, prefix: str) -> Sequence[Served]:
    if isinstance(route, Mount):
        return await served(await _inside(route.app) or (), prefix + route.path)
    if not isinstance(route, Route):
        return ()
    methods_said = methods_of(route.endpoint)
    inside = None if methods_said else await _inside(route.endpoint)
    if inside is not None:
        below = await _every(inside, prefix)
        return [
            operation
            for operation in below
            if route.path_regex.match(operation.path.removeprefix(prefix))
        ]
    methods = sorted(route.methods or methods_said)
    path = prefix + _PARAMETER.sub(r"{\1}", route.path)
    return [Served(method, path, route.endpoint) for method in methods if method != "HEAD"]


async def _every(routes: Iterable[BaseRoute], prefix: str) -> list[Served]:
    return [operation for route in routes for operation in await _behind(route, prefix)]


async def _inside(app: Any) -> Sequence[BaseRoute] | None:
    """Return the routes of an application, or None if it does not reveal any."""
    if isinstance(app, LateRoutes):
        return await app.late_routes()
    routes: Sequence[BaseRoute] | None = getattr(app, "routes", None)
    return routes
