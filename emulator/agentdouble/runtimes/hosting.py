"""The runtimes of one double and everything that serves them, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack

from starlette.routing import Router

from agentdouble.core.clock import Clock
from agentdouble.runtimes import PREFIX, definition
from agentdouble.runtimes.gateway import Gateway
from agentdouble.runtimes.launching import Launcher
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.routes import RuntimeRoutes
from agentdouble.runtimes.usage import Watch
from agentdouble.settings import Settings
from agentdouble.state import Store


class Hosting:
    """Hosts runtimes for one double; belongs to one event loop.

    ``reserved`` are the names that are already used below ``PREFIX``. Hosted code finds its double by the
    ``variables``. Raises DeclarationError for wrong tables in the settings, and MissingExtraError.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        store: Store,
        *,
        reserved: Collection[str],
        variables: Callable[[], Mapping[str, str]],
    ) -> None:
        monitor = Monitor()
        self.launcher = Launcher(settings, variables)
        self.registry = RuntimeRegistry(
            clock,
            monitor,
            self.launcher.launch,
            definition.read_all(settings.runtimes, reserved),
            store,
            idle_s=settings.runtime_idle_s,
            reserved=reserved,
        )
        self.app = Gateway(self.registry, monitor, clock)
        self._watch = Watch(self.registry, monitor)
        self._routes = RuntimeRoutes(self.registry, monitor, self._watch, clock)
        self._resources = AsyncExitStack()

    def addresses(self, url: str) -> Mapping[str, str]:
        """Return the address of each runtime, by name; ``url`` is the double's."""
        return {managed.name: f"{url}{PREFIX}{managed.name}" for managed in self.registry.all()}

    def admin_app(self) -> Router:
        """Return the application of the double's own routes: metrics, lists and logs."""
        return Router(self._routes.routes())

    def begin(self) -> None:
        """Answer from now on, and keep the least number of instances even without a request."""
        self._resources.push_async_callback(self.app.close)
        self._resources.push_async_callback(self.launcher.close)
        if self.registry.all():
            self.launcher.prepare()
        self._resources.push_async_callback(self.registry.close)
        for work in (self.registry.reap(), self._watch.run()):
            self._resources.callback(asyncio.ensure_future(work).cancel)
        self.registry.ensure_min_instances()

    async def close(self) -> None:
        """Stop everything; return when nothing is left."""
        await self._resources.aclose()
