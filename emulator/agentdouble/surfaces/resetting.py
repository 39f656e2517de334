"""Reset a double, except for parts to keep, and return it to a snapshot: the parts and the routes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.errors import PartError, UnknownSnapshotError
from agentdouble.event_bus import EventBus

Return = Callable[[], Awaitable[None]]

STATE = "state"  # stands for the parts that the double's state keeps
MOST = 32


@dataclass(frozen=True)
class Part:
    """A part of what a double holds.

    ``reset`` returns it to how it was at the start; without ``wait``, which it is called with,
    running work may end afterwards. ``snapshot`` returns a function that returns the part to how it
    is now; a part without one is reset when the double returns to a snapshot. ``in_state`` says
    that a state outlives the process with it.
    """

    name: str
    reset: Callable[[bool], Awaitable[None]]
    snapshot: Callable[[], Awaitable[Return]] | None = None
    in_state: bool = False


def part_of(
    name: str, reset: Callable[[], None], snapshot: Callable[[], Callable[[], None]] | None = None
) -> Part:
    """Return a part whose functions do not wait."""

    async def reset_now(_wait: bool) -> None:
        reset()

    async def snapshot_now() -> Return:
        back = snapshot() if snapshot is not None else reset

        async def back_now() -> None:
            back()

        return back_now

    return Part(name, reset_now, None if snapshot is None else snapshot_now)


@dataclass(frozen=True)
class Snapshot:
    """How the parts of a double were at a moment; it ends with the double's process.

    The double returns to it as often as it is asked to, while it is one of its last.
    """

    id: str
    returns: Mapping[str, Return] = field(repr=False)


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
        self._snapshots: dict[str, Snapshot] = {}

    async def reset(self, wait: bool = True, keep: Collection[str] | None = None) -> None:
        """Reset every part but those to keep, by default those that the state keeps.

        Without ``wait`` running work may end afterwards. Raises PartError for an unknown name.
        """
        kept = self._kept((STATE,) if keep is None else keep)
        async with self._resetting:
            for part in self._parts:
                if part.name not in kept:
                    await part.reset(wait)
        self._publish("reset")

    async def snapshot(self) -> Snapshot:
        """Return how the parts are now; the oldest snapshot is forgotten if there are too many."""
        async with self._resetting:
            returns = {
                part.name: await part.snapshot()
                for part in self._parts
                if part.snapshot is not None
            }
        found = Snapshot(f"snapshot-{secrets.token_hex(8)}", returns)
        self._snapshots[found.id] = found
        while len(self._snapshots) > MOST:
            del self._snapshots[next(iter(self._snapshots))]
        return found

    async def restore(self, id_: str) -> None:
        """Return to a snapshot, and reset what it does not have; raise UnknownSnapshotError."""
        snapshot = self._snapshots.get(id_)
        if snapshot is None:
            raise UnknownSnapshotError(id_, MOST)
        async with self._resetting:
            for part in self._parts:
                back = snapshot.returns.get(part.name)
                await (part.reset(True) if back is None else back())
        self._publish("restored")

    def _publish(self, happened: str) -> None:
        if self._events.watched:
            self._events.publish("double", "", happened, dict)

    def _kept(self, keep: Collection[str]) -> Collection[str]:
        known = {part.name for part in self._parts}
        for name in keep:
            if name not in known and name != STATE:
                raise PartError(name, [part.name for part in self._parts] + [STATE])
        if STATE not in keep or not self._outlives:
            return keep
        return {*keep, *(part.name for part in self._parts if part.in_state)}


def reset_routes(parts: Parts) -> list[Route]:
    """Return the routes, relative to the double's own prefix."""
    routes = _Routes(parts)
    return [
        Route("/reset", routes.reset, methods=["POST"]),
        Route("/snapshots", routes.take, methods=["POST"]),
        Route("/snapshots/{id}/restore", routes.restore, methods=["POST"]),
    ]


class _Routes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def reset(self, request: Request) -> Response:
        """Reset the double, except for the parts that ``keep`` names, separated by commas.

        With ``wait=false`` it does not wait for the processes of sessions to end.
        """
        query = request.query_params
        keep = query.get("keep")
        named = None if keep is None else [one for one in keep.split(",") if one]
        await self._parts.reset(query.get("wait") != "false", named)
        return JSONResponse({"status": "reset"})

    async def take(self, _request: Request) -> Response:
        """Take a snapshot."""
        snapshot = await self._parts.snapshot()
        return JSONResponse({"id": snapshot.id, "parts": list(snapshot.returns)}, 201)

    async def restore(self, request: Request) -> Response:
        """Return to a snapshot."""
        id_ = request.path_params["id"]
        await self._parts.restore(id_)
        return JSONResponse({"id": id_, "status": "restored"})
