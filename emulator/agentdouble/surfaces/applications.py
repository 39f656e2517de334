"""The simple and MCP applications of the program that has made the double."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute

from agentdouble.apps.hosted import Applications
from agentdouble.apps.loading import App
from agentdouble.surfaces.surface import Context, Surface


class HostedApplications(Surface):
    """Serves them at the root, at ``/mcp`` and below ``/runtimes`` (INV, MCP)."""

    def __init__(self, context: Context, apps: Sequence[App]) -> None:
        self._clock = context.clock
        self.hosted = Applications(*apps)

    def routes(self) -> Sequence[BaseRoute]:
        """Return all but those of ``/`` and ``/health``, which others have, too."""
        return self.hosted.routes()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.hosted.running(self._clock):
            yield

    def begin_shutdown(self) -> None:
        self.hosted.begin_shutdown()
