"""The MCP services and toolsets that actions create."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agentdouble import mcp_hosting, whole_paths  # noqa: F401 (a path uses it)
from agentdouble.control_plane.routes import Action
from agentdouble.mcp_hosting.refusals import JsonRpcError
from agentdouble.mcp_services import Services
from agentdouble.mcp_services.toolsets import Toolsets
from agentdouble.openapi import Format, Operation
from agentdouble.openapi.operation import described
from agentdouble.state import Registry
from agentdouble.surfaces.mcp_programs import ServicePrograms
from agentdouble.surfaces.mcp_routes import (
    AccessRoutes,
    NewService,
    NewToolset,
    service_body,
    toolset_body,
)
from agentdouble.surfaces.own_requests import own_url
from agentdouble.surfaces.resetting import Part, Return
from agentdouble.surfaces.resource_routes import Body, ResourceRoutes
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.surface import Context, Surface
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.control_plane.resource_actions import ResourceActions


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
        services, toolsets = self._actions()
        return {**services.by_name(), **toolsets.by_name()}

    def _actions_of(self, index: Literal[0, 1]) -> ResourceActions[Any, Any, Any]:
        return self._actions()[index]

    def _actions(self) -> tuple[ResourceActions[Any, Any, Any], ResourceActions[Any, Any, Any]]:
        from agentdouble.control_plane.actions import MCPServiceActions, MCPToolsetActions

        sources = self.context.surface(Runtimes).sources
        return MCPServiceActions(self.services, sources), MCPToolsetActions(self.toolsets)

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes of services and toolsets, and that for the logs of commands."""
        return [
            *self._routes("/mcp-services", self.services, 0, service_body, NewService),
            *self._routes("/mcp-toolsets", self.toolsets, 1, self._toolset_body, NewToolset),
            Route("/mcp-services/{name}/logs", self._logs),
        ]

    def _routes(
        self,
        path: str,
        registry: Registry[Any],
        index: Literal[0, 1],
        complete: Callable[[Body], Body],
        body: Any,
    ) -> list[Route]:
        variables = self.context.environment
        make = functools.partial(self._actions_of, index)
        resources = ResourceRoutes(path, registry, make, complete, body, variables)
        return AccessRoutes(resources, self._host, own_url(variables)).routes()

    def _toolset_body(self, body: Body) -> Body:
        return toolset_body({one.name: one.id for one in self.services.all()}, body)

    @described(lambda _: _described_logs())
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


def _described_logs() -> Operation:
    from agentdouble.runtimes.routes import LOGS

    return LOGS
