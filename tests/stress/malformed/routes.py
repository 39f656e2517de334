"""Which routes a double has, read from the application that runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route, Router, WebSocketRoute
from starlette.types import ASGIApp

_CONTAINERS = (list, tuple, dict)
_ROUTED = (Starlette, Router, BaseRoute)


@dataclass(frozen=True)
class Found:
    """A route: its path with the prefixes of what it is mounted in."""

    path: str
    methods: tuple[str, ...]
    websocket: bool = False


def routes_of(app: ASGIApp) -> list[Found]:
    """Return every route that is reached from an application, whatever stands in between."""
    return sorted(set(_walk(app, "", set())), key=lambda one: (one.path, one.methods))


def _walk(thing: Any, prefix: str, seen: set[tuple[int, str]]) -> Iterator[Found]:
    if (id(thing), prefix) in seen:
        return
    seen.add((id(thing), prefix))
    if isinstance(thing, Mount):
        yield from _walk(thing.app, prefix + thing.path, seen)
    elif isinstance(thing, (Route, WebSocketRoute)):
        yield from _route(thing, prefix, seen)
    elif isinstance(thing, (Starlette, Router)):
        for route in thing.routes:
            yield from _walk(route, prefix, seen)
    else:
        for inner in _inside(thing):
            yield from _walk(inner, prefix, seen)


def _route(
    route: Route | WebSocketRoute, prefix: str, seen: set[tuple[int, str]]
) -> Iterator[Found]:
    websocket = isinstance(route, WebSocketRoute)
    methods = () if websocket else tuple(sorted(getattr(route, "methods", None) or ("GET", "POST")))
    yield Found(prefix + route.path, methods, websocket)
    if not inspect.isroutine(route.endpoint):
        yield from _walk(route.endpoint, prefix, seen)


def _inside(thing: Any) -> Iterator[Any]:
    """Yield what a container, or an application of ours, holds that may have routes."""
    if isinstance(thing, Mapping):
        thing = list(thing.values())
    elif not isinstance(thing, _CONTAINERS):
        thing = list(vars(thing).values()) if hasattr(thing, "__dict__") else []
    for one in thing:
        ours = type(one).__module__.startswith("agentdouble") and callable(one)
        if ours or isinstance(one, (*_CONTAINERS, *_ROUTED)):
            yield one
