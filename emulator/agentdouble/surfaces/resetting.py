"""Reset a double, except for parts to keep: the parts and the route."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.core.event_bus import EventBus
from agentdouble.errors import PartError

STATE = "state"  # stands for the parts that the double's state keeps


@dataclass(frozen=True)
class Part:
    """A part of a double's data.

    ``reset`` restores its initial state; called with ``wait`` false, running work may end
    afterwards. ``in_state`` says that the double's state contains it.
    """

    name: str
    reset: Callable[[bool], Awaitable[None]]
    in_state: bool = False


def part_of(name: str, reset: Callable[[], None]) -> Part:
    """Return a part whose reset never waits."""

    async def reset_now(_wait: bool) -> None:
        reset()

    return Part(name, reset_now)


class Parts:
    """The parts of a double, in the order in which they are reset.

    ``outlives`` says whether the double has a state that outlives it.
    """

    def __init__(
        self, parts: Sequence[Part], *, outlives: bool, events: EventBus | None = None
    ) -> None:
        self._events = events or EventBus()
        self._parts = tuple(parts)
        self._outlives = outlives
        self._resetting = asyncio.Lock()  # two resets at once would declare the same runtimes

    async def reset(self, wait: bool = True, keep: Collection[str] | None = None) -> None:
        """Reset every part except those to keep, by default those in the state.

        Without ``wait`` running work may end afterwards. Raises PartError for an unknown name.
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


def reset_routes(parts: Parts) -> list[Route]:
    """Return the route, relative to the double's own prefix."""
    return [Route("/reset", _Routes(parts).reset, methods=["POST"])]


class _Routes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def reset(self, request: Request) -> Response:
        """Reset the double, except for the parts that ``keep`` names, separated by commas.

        With ``wait=false`` it does not wait for the processes of sessions to end.
        """
        query = request.query_params
        keep = query.get("keep")
        named = None if keep is None else [name for name in keep.split(",") if name]
        await self._parts.reset(query.get("wait") != "false", named)
        return JSONResponse({"status": "reset"})
