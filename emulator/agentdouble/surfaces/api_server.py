"""API-server mode: agents, their sessions and runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute, Route, WebSocketRoute

from agentdouble.agents.directory import SHIPPED, AgentsDirectory
from agentdouble.api_server import routes
from agentdouble.api_server.server import ApiServer
from agentdouble.apps.adapters import ADAPTERS
from agentdouble.surfaces.surface import Context, Surface


class ApiServerMode(Surface):
    """Serves agents as an API server does (API)."""

    name = "API server"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        settings = context.settings
        self.agents = AgentsDirectory(
            settings.agents or SHIPPED,
            adapters=ADAPTERS,
            reload=settings.reload,
        )
        self._server = ApiServer(context.clock, context.version, self.agents, context.store)
        self.app = self._server.app

    def paths(self) -> Mapping[str, str]:
        """Return those that a client needs first."""
        return {
            "/list-apps": "the agents",
            "/apps/<agent>/users/<user>/sessions": "a user's sessions",
            "/run": "runs an agent; /run_sse does so with events as they come",
        }

    def routes(self) -> Sequence[BaseRoute]:
        """Return all but ``/health``, which a simple application has, too."""
        return [
            *(Route(path, self.app) for path in routes.PATHS),
            WebSocketRoute(routes.RUN_LIVE, self.app),
        ]

    async def restore(self) -> None:
        await self._server.load()

    async def reset(self, *, wait: bool) -> None:
        await self._server.reset()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._server.close()
