"""API-server mode: agents, with their sessions and runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute, Route, WebSocketRoute

from agentdouble.agents.directory import SHIPPED, AgentsDirectory
from agentdouble.api_server import PATHS, RUN_LIVE
from agentdouble.apps.adapters import ADAPTERS
from agentdouble.core.threads import import_in_thread
from agentdouble.openapi import Format
from agentdouble.surfaces.surface import DataPart, LateApp, Surface, SurfaceContext, counted

if TYPE_CHECKING:
    from agentdouble.api_server.server import ApiServer

_SERVER = "agentdouble.api_server.server"


class ApiServerMode(Surface):
    """The agents, served as an API server does (API)."""

    name = "API server"

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        settings = context.settings
        self.agents = AgentsDirectory(
            settings.agents or SHIPPED,
            adapters=ADAPTERS,
            reload=settings.reload,
        )
        self._server: ApiServer | None = None
        self.app = LateApp(lambda: self._load().app, _SERVER)

    def paths(self) -> Mapping[str, str]:
        """Return the paths that a client needs first."""
        return {
            "/list-apps": "the agents",
            "/apps/<agent>/users/<user>/sessions": "a user's sessions",
            "/run": "runs an agent; /run_sse streams the events",
        }

    def state(self) -> str:
        """Return the number of agents."""
        return counted(len(self.agents.names()), "agent")

    def routes(self) -> Sequence[BaseRoute]:
        """Return all routes except ``/health``, which a simple application has too."""
        return [
            *(Route(path, self.app) for path in PATHS),
            WebSocketRoute(RUN_LIVE, self.app),
        ]

    def format(self) -> Format:
        """Return the format of FastAPI's errors."""
        from agentdouble.api_server.response_json import Detail

        return Format(self.name, error=Detail | dict[str, Any])

    async def restore(self) -> None:
        if self.context.store.outlives:
            await import_in_thread(_SERVER)
            await self._load().load()

    def parts(self) -> Sequence[DataPart]:
        """Return the sessions of agents, with their artifacts."""
        return [DataPart("agent_sessions", self._reset, in_state=True)]

    async def _reset(self, _wait: bool) -> None:
        if self._server is not None:
            await self._server.reset()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self._server is not None:
                await self._server.close()
            self.agents.close()

    def _load(self) -> ApiServer:
        if self._server is None:
            from agentdouble.api_server.server import ApiServer  # slow: 0.1 s

            context = self.context
            self._server = ApiServer(context.clock, context.version, self.agents, context.store)
        return self._server
