"""``/_emulator/events``: everything that happens in a double, as server-sent events.

Each event has an ``event:`` and one line ``data:`` with a JSON object: the *current* state of its
subject, in the format of the route that lists such subjects. ``happened`` is what happened to it
since its last event, oldest first. Changes of one subject within 50 ms become one event, so a quick
request is one event: ``"happened": ["opened", "answered"]``.

=========== ======================================================= ==============================
event       happened                                                data, besides ``happened``
=========== ======================================================= ==============================
listening                                                           ``{}``: first
resync                                                              ``{}``: events were missed;
                                                                    reload what you show
request     opened, answered                                        an entry of ``/journal``, in
                                                                    short; ``duration_ms`` is null
                                                                    while it is being answered
session     begun, busy, idle, paused, resumed, ttl, ended          an item of ``sessions`` of
                                                                    ``/sessions``; if it ended, an
                                                                    item of ``ended``
clock       moved, frozen, unfrozen, reset                          ``/clock``
fault       armed, fired, released, removed                         an item of ``/faults``
unknowns    chosen                                                  ``in_force`` of ``/unknowns``
tool,       created, changed, deleted                               ``id``, ``name``
service,
runtime
double      reset                                                   ``{}``: also sent when only
                                                                    some parts were reset
journal     cleared                                                 ``{}``
=========== ======================================================= ==============================

``?only=request,session`` selects events; ``listening`` and ``resync`` are always sent. A client that
reads too slowly loses its waiting events and gets ``resync``. A client that reconnects reloads what
it shows. A line ``:`` is sent every 15 seconds. A stream ends when the double stops.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble.core.event_bus import EventBus, Listener
from agentdouble.server import guard
from agentdouble.server.disconnects import ListenerResponse

ABOUT_THE_STREAM = ("listening", "resync")
NAMES = (
    *("request", "session", "clock", "fault", "unknowns"),
    *("tool", "service", "runtime", "double", "journal"),
)


def event_routes(events: EventBus) -> list[Route]:
    """Return the route, relative to the double's own prefix; it raises TooManyListenersError."""
    return [Route("/events", _Routes(events).follow)]


class _Routes:
    def __init__(self, events: EventBus) -> None:
        self._events = events

    async def follow(self, request: Request) -> Response:
        """Stream what happens in the double from now on."""
        only = request.query_params.get("only")
        names = NAMES if only is None else [name for name in only.split(",") if name]
        for name in names:
            if name not in NAMES:
                refusal = guard.Refusal(400, "BadRequest", _unknown(name))
                return guard.render_json(request, refusal)
        listening = self._events.listen()
        return ListenerResponse(listening, _writer({*names, *ABOUT_THE_STREAM}))


def _writer(names: Collection[str]) -> Callable[[Listener], AsyncGenerator[str, None]]:
    async def written(listener: Listener) -> AsyncGenerator[str, None]:
        async with aclosing(listener.events()) as events:
            async for event in events:
                if event is None:
                    yield ":\n\n"
                elif event.name in names:
                    yield f"event: {event.name}\ndata: {event.data}\n\n"

    return written


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name[:100].lower(), NAMES, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"There is no event {name[:40]!r}.{hint} only may name {', '.join(NAMES)}."
