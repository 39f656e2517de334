"""What a surface of the platform is: what it serves, and its life."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.routing import BaseRoute

from agentdouble.clock import Clock
from agentdouble.control_plane.routes import Action
from agentdouble.settings import Settings
from agentdouble.state import Store


@dataclass(frozen=True)
class Context:
    """What all surfaces of a double are made with; ``version`` is the double's."""

    settings: Settings
    clock: Clock
    store: Store
    version: str


class Surface:
    """A part of the platform; it says only what it has, by default nothing.

    A double restores its surfaces before it serves, and enters ``running`` when it begins to.
    """

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes that it serves, the busiest first."""
        return ()

    def actions(self) -> Mapping[str, Action]:
        """Return its actions of the control plane, by name."""
        return {}

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return its routes below ``/_emulator``."""
        return ()

    async def restore(self) -> None:
        """Take from the store what an earlier double has kept."""

    async def reset(self, *, wait: bool) -> None:
        """Be as in the beginning; without ``wait`` what has to end may do so afterwards."""

    async def settle(self) -> None:
        """Return when what has become due by a move of the clock has been dealt with."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside; afterwards nothing is left."""
        yield

    def begin_shutdown(self) -> None:
        """Let nobody wait any longer: the double is about to stop."""
