"""A platform: its surfaces, and the order in which they start and end."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from agentdouble import __version__
from agentdouble.apps.loading import App
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.core.signing import Credentials
from agentdouble.faults.plan import Faults
from agentdouble.journal.entries import Journal

# Import names, not the module: pytester drops modules from sys.modules but not from their package,
# and an old module would look for old classes of surfaces.
from agentdouble.routing import application, policy_of
from agentdouble.settings import Settings
from agentdouble.state import make_store
from agentdouble.surfaces import SURFACES
from agentdouble.surfaces.surface import DataPart, Parts, SurfaceContext, part_of

if TYPE_CHECKING:
    from agentdouble.journal.what_if import StartDouble


class LocalPlatform:
    """The surfaces of one double, as an ASGI application (``app``); belongs to one event loop.

    ``environment`` are the variables that point a client at the double, ``token`` is the secret of
    its own routes, and ``start_double`` starts another. Raises DeclarationError, and
    ApplicationLoadError for two applications of one name.
    """

    def __init__(
        self,
        settings: Settings,
        apps: tuple[App, ...],
        credentials: Credentials,
        environment: Mapping[str, str],
        token: str,
        start_double: StartDouble,
    ) -> None:
        clock, events = Clock(), EventBus()
        self.context = SurfaceContext(
            settings=settings,
            version=__version__,
            apps=apps,
            clock=clock,
            journal=Journal(settings.journal_size, clock, events),
            faults=Faults(OF_THE_PLATFORM, settings.faults, events),
            events=events,
            credentials=credentials,
            environment=environment,
            ledger=settings.chosen(),
            store=make_store(settings.state),
            parts=lambda: self.parts,
            advance=self._advance,
            start_double=start_double,
        )
        for make in SURFACES:
            self.context.surfaces.append(make(self.context))
        self._starting = tuple(reversed(self.context.surfaces))  # callers start last
        self.parts = Parts(
            tuple(self._parts()),
            outlives=self.context.store.outlives,
            events=events,
        )
        policy = policy_of(self.context, token)
        self.app = application(self.context, policy, lambda _app: self._running())

    async def restore(self) -> None:
        """Restore the kept records; after StateError or DeclarationError nothing is left open."""
        store = self.context.store
        try:
            await store.open()
            with ledger.using(self.context.ledger):
                for surface in self._starting:
                    await surface.restore()
        except BaseException:
            await store.close()
            raise

    def _parts(self) -> Iterator[DataPart]:
        context = self.context
        yield part_of("faults", context.faults.reset)
        # before the surfaces, because declared resources are made again at this time
        yield part_of("clock", context.clock.reset)
        for surface in self._starting:
            yield from surface.parts()
        # last, because the calls that the reset ended are also written
        yield part_of("journal", context.journal.clear)

    async def settle(self) -> None:
        """Return when everything that became due by moving the clock is handled."""
        for surface in self._starting:
            await surface.settle()

    def begin_shutdown(self) -> None:
        """End all waiting work, because the double is about to stop."""
        self.context.faults.clear()
        for surface in self._starting:
            surface.begin_shutdown()

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.enter_context(ledger.using(self.context.ledger))
            stack.push_async_callback(self.context.store.close)
            for surface in self._starting:
                await stack.enter_async_context(surface.running())
            yield

    async def _advance(self, by: dt.timedelta) -> None:
        self.context.clock.move(by)
        await self.settle()
