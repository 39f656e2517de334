"""The route of events: what happens in a double, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble.core.event_bus import BusListener, EventBus
from agentdouble.core.suggestions import did_you_mean
from agentdouble.journal.refusals import refused
from agentdouble.server.disconnects import ListenerResponse

ABOUT_THE_STREAM = ("listening", "resync")
NAMES = (
    *("request", "session", "clock", "fault", "unknowns"),
    *("tool", "service", "runtime", "double", "journal"),
)


def event_routes(events: EventBus) -> list[Route]:
    """Return the route, relative to the double's own prefix; it raises TooManyListenersError."""

    async def follow(request: Request) -> Response:
        """Stream what happens in the double from now on."""
        only = request.query_params.get("only")
        names = NAMES if only is None else [name for name in only.split(",") if name]
        for name in names:
            if name not in NAMES:
                message = f"There is no event {name[:40]!r}.{did_you_mean(name, NAMES)}"
                message += f" only may name {', '.join(NAMES)}."
                return refused(request, 400, "BadRequest", message)
        return ListenerResponse(events.listen(), _writer({*names, *ABOUT_THE_STREAM}))

    return [Route("/events", follow)]


def _writer(names: Collection[str]) -> Callable[[BusListener], AsyncGenerator[str, None]]:
    async def written(listener: BusListener) -> AsyncGenerator[str, None]:
        async with aclosing(listener.events()) as events:
            async for event in events:
                if event is None:
                    yield ":\n\n"
                elif event.name in names:
                    yield f"event: {event.name}\ndata: {event.data}\n\n"

    return written
