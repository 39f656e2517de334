"""The A2A applications of the program that made the double."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.routing import BaseRoute, Route

from agentdouble.apps.a2a import paths
from agentdouble.apps.a2a.grpc_listener import GrpcBinding
from agentdouble.apps.hosted import A2AApplications
from agentdouble.journal_middleware import recorded
from agentdouble.openapi import Format
from agentdouble.surfaces.api_server import ApiServerMode
from agentdouble.surfaces.resetting import Part
from agentdouble.surfaces.surface import Context, Surface


class HostedA2A(Surface):
    """The A2A applications, at the root and below ``/runtimes``, the first also over gRPC (A2A)."""

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

    async def restore(self) -> None:
        """Listen for gRPC; if that fails, the double does not start."""
        await self.hosted.listen_grpc(self._grpc_binding())

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

    def _grpc_binding(self) -> GrpcBinding | None:
        settings = self.context.settings
        if settings.a2a_grpc_port is None:
            return None
        return GrpcBinding(
            settings.a2a_grpc_port,
            api_key=None if settings.api_key is None else settings.api_key.get_secret_value(),
            body_limit=settings.body_limit,
            refuses=self.context.refuses,
            in_card=settings.a2a_grpc_in_card,
            record=partial(recorded, self.context.journal, self.context.ledger),
        )
