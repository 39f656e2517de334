"""The runtimes of one double and everything that serves them, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack

from starlette.routing import Router
from starlette.types import Scope

from agentdouble.clock import Clock
from agentdouble.runtimes import PREFIX, definition
from agentdouble.runtimes.authentication import GatewayAuthenticator
from agentdouble.runtimes.gateway import Gateway
from agentdouble.runtimes.launching import Launcher
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.proxying import Proxy
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.routes import RuntimeRoutes
from agentdouble.runtimes.runtimes import Runtimes
from agentdouble.runtimes.usage import Watch
from agentdouble.settings import Settings
from agentdouble.state import Store


class Hosting:
    """Hosts runtimes for one double; belongs to one event loop.

    ``taken`` are names that are already used below ``PREFIX``. Hosted code finds its double by the
    ``variables``. Raises DeclarationError for wrong tables in the settings, and MissingExtraError.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        store: Store,
        *,
        taken: Collection[str],
        variables: Callable[[], Mapping[str, str]],
    ) -> None:
        tables = definition.read_all(settings.runtimes, taken)
        self._clock = clock
        self._monitor = Monitor()
        self.launcher = Launcher(settings, variables)
        self._runtimes = Runtimes(
            clock,
            self._monitor,
            self.launcher.launch,
            idle_s=settings.runtime_idle_s,
            taken=taken,
        )
        self._watch = Watch(self._runtimes, self._monitor)
        self._gatekeeper = GatewayAuthenticator(clock)
        self._proxy = Proxy()
        self.app = Gateway(self._runtimes, self._gatekeeper, self._proxy, self._monitor)
        self._resources = AsyncExitStack()
        self.registry = RuntimeRegistry(clock, self._runtimes, tables, store)

    def addresses(self, url: str) -> Mapping[str, str]:
        """Return the address of each runtime, by name; ``url`` is the double's."""
        return {one.name: f"{url}{PREFIX}{one.name}" for one in self.registry.all()}

    def admin_app(self) -> Router:
        """Return the application of the double's own routes: metrics, lists and logs."""
        own = RuntimeRoutes(self._runtimes, self._monitor, self._watch, self._clock)
        return Router(own.routes())

    def authenticates(self, scope: Scope) -> bool:
        """Return whether a request is for a runtime that authenticates its callers itself."""
        return self.app.authenticates(scope)

    def begin_shutdown(self) -> None:
        """Turn away requests that wait for an instance, because the double is about to stop."""
        self._runtimes.begin_shutdown()

    async def settle(self) -> None:
        """Handle a move of the clock."""
        await self._runtimes.settle()

    def begin(self) -> None:
        """Answer from now on, and keep the least number of instances even without a request."""
        self._resources.push_async_callback(self._proxy.close)
        self._resources.push_async_callback(self.launcher.close)
        if self._runtimes.all():
            self.launcher.prepare()
        self._resources.push_async_callback(self._runtimes.close)
        for keeper in (self._runtimes.reap(), self._watch.run()):
            self._resources.callback(asyncio.ensure_future(keeper).cancel)
        self._runtimes.ensure_min_instances()

    async def close(self) -> None:
        """Stop everything; return when nothing is left."""
        await self._resources.aclose()
