"""The A2A applications of the program that has made the double."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.a2a.grpc_listener import GrpcBinding, Refuses
from agentdouble.apps.a2a.hosted import A2AApplications, HostContext
from agentdouble.apps.loading import App
from agentdouble.surfaces.surface import Context, Surface


class HostedA2A(Surface):
    """Serves them at the root and below ``/runtimes``, the first one over gRPC as well (A2A).

    ``agents`` are those that an application can name; ``refuses`` tells who may not call over
    gRPC, where no key is asked for.
    """

    def __init__(
        self, context: Context, apps: Sequence[App], agents: AgentsDirectory, refuses: Refuses
    ) -> None:
        self._settings = context.settings
        self._house = HostContext(context.clock, context.store, agents)
        self._refuses = refuses
        self.hosted = A2AApplications(apps)

    def routes(self) -> Sequence[BaseRoute]:
        """Return all but ``POST /``, which the control plane has, too."""
        return self.hosted.routes()

    async def restore(self) -> None:
        """Listen for gRPC: where that fails, the double does not start."""
        await self.hosted.listen_grpc(self._grpc_binding())

    async def reset(self, *, wait: bool) -> None:
        await self.hosted.reset()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.hosted.running(self._house):
            yield

    def _grpc_binding(self) -> GrpcBinding | None:
        settings = self._settings
        if settings.a2a_grpc_port is None:
            return None
        return GrpcBinding(
            settings.a2a_grpc_port,
            api_key=None if settings.api_key is None else settings.api_key.get_secret_value(),
            body_limit=settings.body_limit,
            refuses=self._refuses,
        )
