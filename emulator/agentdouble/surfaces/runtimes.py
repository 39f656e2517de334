"""Hosted runtimes: other programs behind a gateway.

The hosting part is imported, created and started on first use. At the double's start this happens
only if the settings declare runtimes or a state outside memory.
"""

from __future__ import annotations

import contextvars
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Route, WebSocketRoute

from agentdouble.control_plane.action_methods import Action
from agentdouble.core.imports import import_now
from agentdouble.core.threads import import_in_thread
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import described
from agentdouble.runtimes import ADMIN_PATHS, PREFIX
from agentdouble.runtimes.handle import Call, HostedRuntimes
from agentdouble.surfaces.applications import HostedA2A, HostedApplications
from agentdouble.surfaces.surface import DataPart, LateApp, Surface, SurfaceContext, counted

if TYPE_CHECKING:
    from agentdouble.control_plane.runtime_artifacts import ArtifactSources
    from agentdouble.runtimes.hosting import Hosting
    from agentdouble.runtimes.launching import InstanceLauncher
    from agentdouble.runtimes.registry import RuntimeRegistry

HOSTING = "agentdouble.runtimes.hosting"
_PASSED_ON = {
    method: Operation(
        summary="Pass a request on to an instance of a runtime, the first part of the path",
        answers=(Answer(Any, "default", "*/*"),),
        body=Any if method in ("POST", "PUT", "PATCH") else None,
        body_type="*/*",
        optional=True,
    )
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
}


class Runtimes(Surface):
    """The hosted runtimes (HST)."""

    name = "Runtimes"

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        settings = context.settings
        self._names = _names(context)
        sources = settings.runtime_sources or (Path.cwd(),)  # the current one, at this moment
        self._sources = tuple(path.resolve() for path in sources)
        self._hosting: Hosting | None = None
        self._serving: contextvars.Context | None = None
        if settings.runtimes:
            self._load()

    def authenticates(self, connection: HTTPConnection) -> bool:
        """Return whether a request is for a runtime with its own keys or issuer."""
        path: str = connection.scope["path"]
        name, _, _ = path.removeprefix(PREFIX).partition("/")
        if self._hosting is None or not path.startswith(PREFIX) or name in self._names:
            return False
        return self._hosting.app.authenticates(connection.scope)

    def addresses(self, url: str) -> Mapping[str, str]:
        """Return the address of each runtime, by name; ``url`` is the double's."""
        runtimes = () if self._hosting is None else self._hosting.registry.all()
        return {managed.name: f"{url}{PREFIX}{managed.name}" for managed in runtimes}

    def handle(self, call: Call, url: str) -> HostedRuntimes:
        """Return the object by which the program that started the double uses the runtimes."""
        return HostedRuntimes(self._registry, call, url)

    def paths(self) -> Mapping[str, str]:
        """Return the path of all runtimes."""
        return {f"{PREFIX}<name>": "the runtime of that name"}

    def state(self) -> str:
        """Return the number of runtimes."""
        return counted(len(self.addresses("")), "runtime")

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the gateway."""
        path = f"{PREFIX}{{rest:path}}"
        app = LateApp(lambda: self._load().app, HOSTING)
        return [Route(path, described(_PASSED_ON)(app)), WebSocketRoute(path, app)]

    def actions(self) -> Mapping[str, Action]:
        """Return the actions that manage runtimes and their versions."""
        from agentdouble.control_plane.actions import RuntimeActions  # slow: 60 ms

        return RuntimeActions(self._load().registry, self.sources).by_name()

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes for metrics, lists and logs of the runtimes."""
        app = LateApp(lambda: self._load().admin_app(), HOSTING)
        return [Route(path, app) for path in ADMIN_PATHS]

    async def restore(self) -> None:
        if self._hosting is not None or self.context.store.outlives:
            await (await self._registry()).load()

    def parts(self) -> Sequence[DataPart]:
        """Return the runtimes."""
        return [DataPart("runtimes", self._reset, in_state=True)]

    async def _reset(self, _wait: bool) -> None:
        if self._hosting is not None:
            await self._hosting.registry.reset()

    async def settle(self) -> None:
        if self._hosting is not None:
            await self._hosting.registry.settle()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._serving = contextvars.copy_context()
        try:
            if self._hosting is not None:
                self._hosting.begin()
            yield
        finally:
            if self._hosting is not None:
                await self._hosting.close()

    def begin_shutdown(self) -> None:
        if self._hosting is not None:
            self._hosting.registry.begin_shutdown()

    @property
    def sources(self) -> ArtifactSources:
        """The directories whose programs the control plane may run."""
        from agentdouble.control_plane.runtime_artifacts import ArtifactSources  # slow: 30 ms

        return ArtifactSources(self._sources)

    async def launcher(self) -> InstanceLauncher:
        """Return the launcher of confined processes, which other surfaces use too."""
        await import_in_thread(HOSTING)
        return self._load().launcher

    async def _registry(self) -> RuntimeRegistry:
        await import_in_thread(HOSTING)
        return self._load().registry

    def _load(self) -> Hosting:
        """Return the part that hosts runtimes; start it if the double already serves."""
        if self._hosting is None:
            import_now(HOSTING)
            from agentdouble.runtimes.hosting import Hosting  # slow: 0.1 s

            context = self.context
            self._hosting = Hosting(
                context.settings,
                context.clock,
                context.store,
                reserved=self._names,
                variables=lambda: context.environment,
            )
            self._hosting.registry.publish_to(context.events)
            if self._serving is not None:
                # its background work belongs to the double, not to the current request
                self._serving.run(self._hosting.begin)
        return self._hosting


def _names(context: SurfaceContext) -> frozenset[str]:
    """Return the names of this process's applications below PREFIX."""
    hosted = context.surface(HostedApplications).hosted, context.surface(HostedA2A).hosted
    below = [path for app in hosted for path in app.addresses if path.startswith(PREFIX)]
    return frozenset(path.removeprefix(PREFIX).partition("/")[0] for path in below)
