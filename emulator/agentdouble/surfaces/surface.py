"""What a surface of the platform is: what it serves, and its life."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.routing import BaseRoute

from agentdouble.admission import Address
from agentdouble.apps.loading import App
from agentdouble.clock import Clock
from agentdouble.control_plane.routes import Action
from agentdouble.faults import Faults
from agentdouble.journal import Journal
from agentdouble.ledger import Ledger
from agentdouble.settings import Settings
from agentdouble.signing import Credentials
from agentdouble.state import Store

S = TypeVar("S", bound="Surface")


@dataclass(frozen=True)
class Context:
    """What every surface of a double is made with, and where it finds the others.

    ``environment`` are the variables that point a client at the double. ``refuses`` tells
    whether a caller, by its address and ours, may not call what asks for no credentials.
    ``reset`` and ``advance`` do so to the whole double.
    """

    settings: Settings
    version: str
    apps: tuple[App, ...]
    clock: Clock
    journal: Journal
    faults: Faults
    credentials: Credentials
    ledger: Ledger
    store: Store
    environment: Mapping[str, str]
    refuses: Callable[[Address, Address], Awaitable[bool]]
    reset: Callable[[bool], Awaitable[None]]
    advance: Callable[[dt.timedelta], Awaitable[None]]
    surfaces: list[Surface] = field(default_factory=list)

    def surface(self, kind: type[S]) -> S:
        """Return the surface of this type; while surfaces are made, only an earlier one."""
        for surface in self.surfaces:
            if isinstance(surface, kind):
                return surface
        raise LookupError(f"There is no surface of the type {kind.__name__} yet.")


# a base class and no Protocol: most surfaces need three or four of these, and say no more
class Surface:
    """A part of the platform, which overrides what it has.

    A double restores its surfaces before it serves, and enters ``running`` when it begins to.
    """

    name = ""  # its title on the landing page

    def __init__(self, context: Context) -> None:
        self.context = context

    def paths(self) -> Mapping[str, str]:
        """Return what the landing page says: the paths, each with what answers there."""
        return {}

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes that it serves, the busiest first."""
        return ()

    def actions(self) -> Mapping[str, Action]:
        """Return its actions of the control plane, by name; called when the first one is asked for.

        Their classes are imported in it, from ``control_plane.actions``.
        """
        return {}

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return its routes below ``/_emulator``."""
        return ()

    def health(self) -> Mapping[str, Any]:
        """Return what ``/_emulator/health`` says of it."""
        return {}

    async def restore(self) -> None:
        """Take from the store what an earlier double has kept."""

    async def reset(self, *, wait: bool) -> None:
        """Go back to the beginning; without ``wait`` what has to end may do so afterwards."""

    async def settle(self) -> None:
        """Return when what has become due by a move of the clock has been dealt with."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside; afterwards nothing is left."""
        yield

    def begin_shutdown(self) -> None:
        """End what only waits, before calls have their time to finish.

        Whoever listens for notifications would hold up the end until uvicorn's patience ends.
        """
