"""The operations that routes serve: the endpoints behind them, however they are nested."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from starlette.routing import BaseRoute, Mount, Route

from agentdouble.openapi.operation import methods_of, operation_of

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


class Served(NamedTuple):
    """An operation that is served: a method at a path, and the endpoint that answers."""

    method: str
    path: str
    endpoint: Any


@runtime_checkable
class LateRoutes(Protocol):
    """An ASGI application whose routes exist when somebody asks for them."""

    async def late_routes(self) -> Sequence[BaseRoute]: ...


async def served(routes: Iterable[BaseRoute], prefix: str = "") -> list[Served]:
    """Return the operations of routes in their order; the first one with a path answers.

    WebSockets are left out, because OpenAPI has no words for them.
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
    """Return the routes of an application, None if it has none that it tells."""
    if isinstance(app, LateRoutes):
        return await app.late_routes()
    routes: Sequence[BaseRoute] | None = getattr(app, "routes", None)
    return routes
