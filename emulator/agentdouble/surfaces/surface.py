"""The base class of the platform's surfaces: their routes, start and end."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.apps.loading import App
from agentdouble.control_plane.action_methods import Action
from agentdouble.core import strict_json
from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.core.ledger import Ledger
from agentdouble.core.signing import Credentials
from agentdouble.core.threads import import_in_thread
from agentdouble.errors import PartError
from agentdouble.faults.plan import Faults
from agentdouble.journal.entries import Journal
from agentdouble.openapi import Format
from agentdouble.openapi.operation import Served, served
from agentdouble.server.guard import Refusal
from agentdouble.settings import Settings
from agentdouble.state import Store

if TYPE_CHECKING:
    from agentdouble.journal.what_if import StartDouble

STATE = "state"  # stands for the parts that the double's state keeps


@dataclass(frozen=True)
class DataPart:
    """A part of a double's data.

    ``reset`` restores its initial state; called with ``wait`` false, running work may end
    afterwards. ``in_state`` says that the double's state contains it.
    """

    name: str
    reset: Callable[[bool], Awaitable[None]]
    in_state: bool = False


def part_of(name: str, reset: Callable[[], None]) -> DataPart:
    """Return a part whose reset never waits."""

    async def reset_now(_wait: bool) -> None:
        reset()

    return DataPart(name, reset_now)


class Parts:
    """The parts of a double, in the order in which they are reset.

    ``outlives`` says whether the double has a state that outlives it.
    """

    def __init__(self, parts: Sequence[DataPart], *, outlives: bool, events: EventBus) -> None:
        self._events = events
        self._parts = tuple(parts)
        self._outlives = outlives
        self._resetting = asyncio.Lock()  # two resets at once would declare the same runtimes

    async def reset(self, wait: bool = True, keep: Collection[str] | None = None) -> None:
        """Reset every part except those to ``keep``, by default those in the state.

        Without ``wait``, running work may end after this returns. Raises PartError for an unknown
        name.
        """
        excluded = self._excluded((STATE,) if keep is None else keep)
        async with self._resetting:
            for part in self._parts:
                if part.name not in excluded:
                    await part.reset(wait)
        if self._events.watched:
            self._events.publish("double", "", "reset", dict)

    def _excluded(self, keep: Collection[str]) -> Collection[str]:
        names = {part.name for part in self._parts}
        for name in keep:
            if name not in names and name != STATE:
                raise PartError(name, [part.name for part in self._parts] + [STATE])
        if STATE not in keep or not self._outlives:
            return keep
        return {*keep, *(part.name for part in self._parts if part.in_state)}


S = TypeVar("S", bound="Surface")


@dataclass(frozen=True)
class SurfaceContext:
    """The objects that every surface of a double uses, including the other surfaces.

    ``environment`` are the variables that point a client at the double. ``advance``
    and the result of ``parts`` act on the whole double. ``start_double`` starts another double for
    one what-if request.
    """

    settings: Settings
    version: str
    apps: tuple[App, ...]
    clock: Clock
    journal: Journal
    faults: Faults
    events: EventBus
    credentials: Credentials
    ledger: Ledger
    store: Store
    environment: Mapping[str, str]
    parts: Callable[[], Parts]
    advance: Callable[[dt.timedelta], Awaitable[None]]
    start_double: StartDouble
    surfaces: list[Surface] = field(default_factory=list)

    def surface(self, kind: type[S]) -> S:
        """Return the surface of this type; during set-up only earlier ones exist."""
        for surface in self.surfaces:
            if isinstance(surface, kind):
                return surface
        raise LookupError(f"The surface {kind.__name__} does not exist yet.")


# a base class and not a Protocol, because most surfaces need only three or four methods
class Surface:
    """A part of the platform; a subclass overrides the methods that it needs.

    A double restores its surfaces before it serves, and enters ``running`` when it starts to
    serve.
    """

    name = ""  # its title on the landing page
    is_documented = True  # in the OpenAPI document, which describes only the platform

    def __init__(self, context: SurfaceContext) -> None:
        self.context = context

    def paths(self) -> Mapping[str, str]:
        """Return the paths for the landing page, each with a description."""
        return {}

    def state(self) -> str:
        """Return in a few words what it has now; empty if there is nothing to say."""
        return ""

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes, the busiest first."""
        return ()

    def format(self) -> Format:
        """Return the common parts of its operations in the OpenAPI document."""
        return Format(self.name)

    async def operations(self) -> Sequence[Served]:
        """Return the operations for the OpenAPI document."""
        return await served(self.routes()) if self.is_documented else ()

    def actions(self) -> Mapping[str, Action]:
        """Return the control-plane actions by name; called at the first action.

        Their classes are imported inside, from ``control_plane.actions``.
        """
        return {}

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes below ``/_emulator``."""
        return ()

    def health(self) -> Mapping[str, Any]:
        """Return this surface's part of ``/_emulator/health``."""
        return {}

    async def restore(self) -> None:
        """Restore the data of an earlier double from the store."""

    def parts(self) -> Sequence[DataPart]:
        """Return the parts that a reset empties, in order."""
        return ()

    async def settle(self) -> None:
        """Return when everything that became due with the clock's move is handled."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the block runs; clean up afterwards."""
        yield

    def begin_shutdown(self) -> None:
        """End all waiting work, before calls have their time to finish.

        A client that listens for notifications would delay the end until uvicorn's timeout.
        """


class LateApp:
    """An application that imports its modules in a thread when it is first called.

    So a double starts without parts that no client uses, and answers other requests during an
    import.
    """

    def __init__(self, make: Callable[[], ASGIApp], *modules: str) -> None:
        self._make = make
        self._modules = modules
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = await self._load()
        await app(scope, receive, send)

    async def late_routes(self) -> Sequence[BaseRoute]:
        """Import the application, if that has not happened, and return its routes."""
        return getattr(await self._load(), "routes", ())

    async def _load(self) -> ASGIApp:
        if self._app is None:
            await import_in_thread(*self._modules)
            self._app = self._app or self._make()  # many requests may have waited
        return self._app


def counted(number: int, noun: str) -> str:
    """Return "1 tool" or "2 tools"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class RouteRefusedError(Exception):
    """A refused request for one of the double's own routes."""

    def __init__(self, message: str, status: int = 400, kind: str = "BadRequest") -> None:
        self.refusal = Refusal(status, kind, message)


def read_json(body: bytes, explanation: str) -> Any:
    """Return the document of a body; raise RefusedError with a description of the expected body."""
    try:
        return strict_json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RouteRefusedError(f"{explanation}: {error}.") from None
