"""Hosted runtimes: programs of others behind a gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.runtimes.gateway import PREFIX
from agentdouble.runtimes.hosting import Hosting
from agentdouble.surfaces.a2a import HostedA2A
from agentdouble.surfaces.applications import HostedApplications
from agentdouble.surfaces.surface import Context, Surface


class Runtimes(Surface):
    """Hosts runtimes (HST)."""

    name = "Runtimes"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._taken = _taken(context)
        self.hosting = Hosting(
            context.settings,
            context.clock,
            context.store,
            taken=self._taken,
            variables=lambda: context.environment,
            version=context.version,
        )
        self._sources = Sources.of(context.settings.runtime_sources)

    def has_pages(self, connection: HTTPConnection) -> bool:
        """Whether a request is for a runtime, and none of this process's applications."""
        path: str = connection.scope["path"]
        name, _, _ = path.removeprefix(PREFIX).partition("/")
        return path.startswith(PREFIX) and name not in self._taken

    def authenticates(self, connection: HTTPConnection) -> bool:
        """Whether a request is for a runtime that has keys or an issuer of its own."""
        return self.has_pages(connection) and self.hosting.authenticates(connection.scope)

    def paths(self) -> Mapping[str, str]:
        """Return that of all runtimes."""
        return {f"{PREFIX}<name>": "the runtime of that name"}

    def routes(self) -> Sequence[BaseRoute]:
        """Return those of the gateway."""
        return self.hosting.routes()

    def actions(self) -> Mapping[str, Action]:
        """Return what runtimes and their versions are managed with."""
        from agentdouble.control_plane.actions import RuntimeActions, RuntimeVersionActions

        return {
            **RuntimeActions(self.hosting.registry, self._sources).by_name(),
            **RuntimeVersionActions(self.hosting.registry).by_name(),
        }

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return their figures, lists and logs."""
        return self.hosting.own_routes().routes()

    async def restore(self) -> None:
        await self.hosting.registry.load()

    async def reset(self, *, wait: bool) -> None:
        await self.hosting.registry.reset()

    async def settle(self) -> None:
        await self.hosting.settle()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.hosting.running():
            self.hosting.ensure_min_instances()
            yield

    def begin_shutdown(self) -> None:
        self.hosting.begin_shutdown()


def _taken(context: Context) -> frozenset[str]:
    """Return the names of the applications of this process that answer below PREFIX."""
    hosted = context.surface(HostedApplications).hosted, context.surface(HostedA2A).hosted
    below = [path for one in hosted for path in one.addresses if path.startswith(PREFIX)]
    return frozenset(path.removeprefix(PREFIX).partition("/")[0] for path in below)
