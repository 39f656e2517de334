"""The A2A applications of the program that made the double."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import BaseRoute, Route

from agentdouble.apps.a2a import paths
from agentdouble.apps.hosted import A2AApplications
from agentdouble.openapi import Format
from agentdouble.surfaces.api_server import ApiServerMode
from agentdouble.surfaces.resetting import Part
from agentdouble.surfaces.surface import Context, Surface


class HostedA2A(Surface):
    """The A2A applications, at the root and below ``/runtimes`` (A2A)."""

    name = "A2A applications"

    def __init__(self, context: Context) -> None:
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

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the applications, including ``POST /``."""
        return [Route("/", self.hosted.root, methods=["POST"]), *self.hosted.routes()]

    def format(self) -> Format:
        """Return a format for JSON-RPC and REST, whose errors differ."""
        return Format(self.name, refused=dict[str, Any])

    def parts(self) -> Sequence[Part]:
        """Return the tasks, which no snapshot can have: turns that run cannot be returned to."""
        return [Part("tasks", self._reset, in_state=True)]

    async def _reset(self, _wait: bool) -> None:
        await self.hosted.reset()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        context = self.context
        agents = context.surface(ApiServerMode).agents  # an application can name these agents
        async with self.hosted.running(context.clock, context.store, agents):
            yield
