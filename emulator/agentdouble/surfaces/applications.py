"""The applications of the program that created the double: simple, MCP and A2A."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.apps.a2a import paths
from agentdouble.apps.hosted import A2AApplications, ApplicationHost
from agentdouble.core import ledger
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import TEXT, described
from agentdouble.surfaces.api_server import ApiServerMode
from agentdouble.surfaces.surface import DataPart, Surface, SurfaceContext, counted


class HostedApplications(Surface):
    """The applications, at the root, at ``/mcp`` and below ``/runtimes`` (INV, MCP)."""

    name = "Applications"

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        self.hosted = ApplicationHost(*context.apps)

    def paths(self) -> Mapping[str, str]:
        """Return the paths of the applications and of the first one's probe."""
        paths = {path: f"the application {name}" for path, name in self.hosted.addresses.items()}
        return {**paths, "/ping": "a probe: whether the application at /invoke is alive"}

    def state(self) -> str:
        """Return the number of applications."""
        return counted(len(self.hosted.names), "application")

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


class HostedA2A(Surface):
    """The A2A applications, at the root and below ``/runtimes`` (A2A)."""

    name = "A2A applications"

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        self.hosted = A2AApplications(context.apps)

    def paths(self) -> Mapping[str, str]:
        """Return the paths of the applications and of the first one's card."""
        return {
            paths.CARD: "the card of the application at /",
            **{
                at: f"the application {name}, by POST" for at, name in self.hosted.addresses.items()
            },
        }

    def state(self) -> str:
        """Return the number of applications."""
        return counted(len(self.hosted.addresses), "application")

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the applications, including ``POST /``."""
        return [Route("/", self.hosted.root, methods=["POST"]), *self.hosted.routes()]

    def parts(self) -> Sequence[DataPart]:
        """Return the tasks."""
        return [DataPart("tasks", lambda _wait: self.hosted.reset(), in_state=True)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        context = self.context
        agents = context.surface(ApiServerMode).agents  # an application can name these agents
        async with self.hosted.running(context.clock, context.store, agents):
            yield


# OpenAPI allows one operation per path; the ledger decides who answers, and that may change
@described({"GET": Operation(answers=(Answer(Any), Answer(str, media_type=TEXT)))})
class _Health:
    """Reports the health of the application or the API server."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._apps[ledger.choose("U-HEALTH-CLASH")](scope, receive, send)
