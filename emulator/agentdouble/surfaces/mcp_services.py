"""The MCP services and toolsets that actions create."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agentdouble import mcp_hosting, whole_paths  # noqa: F401 (a path uses it)
from agentdouble.control_plane.routes import Action
from agentdouble.mcp_hosting.refusals import JsonRpcError
from agentdouble.mcp_services import Services
from agentdouble.mcp_services.toolsets import Toolsets
from agentdouble.openapi import Format
from agentdouble.surfaces.mcp_programs import ServicePrograms
from agentdouble.surfaces.resetting import Part, Return
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.surface import Context, Surface
from agentdouble.threads import import_in_thread


class MCPServices(Surface):
    """MCP services (MCS) and toolsets, each at its own address."""

    name = "MCP services and toolsets"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        clock, store = context.clock, context.store
        self._host = mcp_hosting.Host()
        self.programs = ServicePrograms(context)
        self.services = Services(clock, self._host, self.programs, store)
        self.toolsets = Toolsets(clock, self._host, self.services, store)
        self.services.publish_to(context.events)
        self.toolsets.publish_to(context.events)

    def paths(self) -> Mapping[str, str]:
        """Return the path of all endpoints."""
        return {f"{mcp_hosting.PREFIX}<name>": "the service or toolset of that name, with its key"}

    def routes(self) -> Sequence[BaseRoute]:
        """Return the route of all endpoints."""
        return [Route(mcp_hosting.PREFIX + "{name:rest}", self._host)]

    def format(self) -> Format:
        """Return the format of JSON-RPC, and that a request needs a key of its service."""
        return Format(self.name, refused=JsonRpcError, security=("serviceKey",))

    def actions(self) -> Mapping[str, Action]:
        """Return the actions that manage services and toolsets."""
        from agentdouble.control_plane.actions import MCPServiceActions, MCPToolsetActions

        sources = self.context.surface(Runtimes).sources
        return {
            **MCPServiceActions(self.services, sources).by_name(),
            **MCPToolsetActions(self.toolsets).by_name(),
        }

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the route for the logs of services that are commands."""
        return [Route("/mcp/{name}/logs", self._logs)]

    async def _logs(self, request: Request) -> Response:
        """Return what the processes of a service have printed."""
        await import_in_thread("agentdouble.runtimes.routes")
        from agentdouble.runtimes.routes import printed

        service = self.services.named(request.path_params["name"])
        return printed(request, self.programs.logs(service.name))

    async def restore(self) -> None:
        await self.services.load()
        await self.toolsets.load()

    def parts(self) -> Sequence[Part]:
        """Return the services and toolsets, which share names and addresses."""
        return [Part("mcp", self._reset, self._snapshot, in_state=True)]

    async def _reset(self, _wait: bool) -> None:
        await self.toolsets.reset()  # first, because toolsets are made of services
        await self.services.reset()

    async def _snapshot(self) -> Return:
        toolsets, services = self.toolsets.snapshot(), self.services.snapshot()

        async def back() -> None:
            now = self.toolsets.snapshot()
            kept = {id_: one for id_, one in now.items() if id_ in toolsets}
            await self.toolsets.return_to(kept)  # first, because their names may be services' again
            await self.services.return_to(services)
            await self.toolsets.return_to(toolsets)

        return back

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._host.running():
            yield

    def begin_shutdown(self) -> None:
        self._host.begin_shutdown()
