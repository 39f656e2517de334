"""Hosted runtimes: programs of others behind a gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute

from agentdouble.control_plane import RuntimeActions, RuntimeVersionActions
from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.runtimes.hosting import Hosting
from agentdouble.surfaces.surface import Context, Surface


class Runtimes(Surface):
    """Hosts runtimes (HST); ``taken`` and ``variables`` are those of ``Hosting``."""

    def __init__(
        self,
        context: Context,
        *,
        taken: Collection[str],
        variables: Callable[[], Mapping[str, str]],
    ) -> None:
        self.hosting = Hosting(
            context.settings,
            context.clock,
            context.store,
            taken=taken,
            variables=variables,
            version=context.version,
        )
        self._sources = Sources.of(context.settings.runtime_sources)

    def routes(self) -> Sequence[BaseRoute]:
        """Return those of the gateway."""
        return self.hosting.routes()

    def actions(self) -> Mapping[str, Action]:
        """Return what runtimes and their versions are managed with."""
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
        self.hosting.let_go()
