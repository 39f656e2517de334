"""The simple and MCP applications of the program that made the double."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble import ledger
from agentdouble.apps.hosted import Applications
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import TEXT, described
from agentdouble.surfaces.api_server import ApiServerMode
from agentdouble.surfaces.surface import Context, Surface


class HostedApplications(Surface):
    """The applications, at the root, at ``/mcp`` and below ``/runtimes`` (INV, MCP)."""

    name = "Applications"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.hosted = Applications(*context.apps)

    def paths(self) -> Mapping[str, str]:
        """Return the paths of the applications and of the first one's probe."""
        found = {path: f"the application {name}" for path, name in self.hosted.addresses.items()}
        return {**found, "/ping": "a probe: whether the application at /invoke is alive"}

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes, including ``/health``, which API-server mode has too."""
        api_server = self.context.surface(ApiServerMode).app
        health = _Health({"simple-first": self.hosted.root, "api-server": api_server})
        return [Route("/health", health), *self.hosted.routes()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.hosted.running(self.context.clock):
            yield

    def begin_shutdown(self) -> None:
        self.hosted.begin_shutdown()


# OpenAPI has one operation of a path: who answers is the ledger's choice, which may change
@described({"GET": Operation(answers=(Answer(Any), Answer(str, media_type=TEXT)))})
class _Health:
    """Return that the application, or the API server, is healthy."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._apps[ledger.choose("U-HEALTH-CLASH")](scope, receive, send)
