"""``/_emulator/...``: the double's own routes, the only ones outside the specification.

All but ``/health`` need the double's token, which ``guard`` checks.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agentdouble.errors import (
    FaultError,
    HostingError,
    LiveError,
    ModelError,
    PartError,
    SandboxError,
    StateError,
    TooManyListenersError,
    UnknownRuntimeError,
    UnknownServiceError,
)
from agentdouble.faults.admin_routes import fault_routes
from agentdouble.journal.routes import event_routes, journal_routes
from agentdouble.journal.what_if_routes import what_if_routes
from agentdouble.openapi.operation import Served
from agentdouble.server import guard
from agentdouble.server.guard import OWN, Refusal
from agentdouble.surfaces.surface import Context, RefusedError, Surface, read_json, reset_routes
from agentdouble.surfaces.unknown_routes import unknown_routes


class Admin(Surface):
    """The double's own routes, including those of the other surfaces."""

    name = "The double's own"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        context.clock.follow(self._publish_time)

    def paths(self) -> Mapping[str, str]:
        """Return the routes that need neither an id nor a query."""
        return {OWN + path: description for path, description in _PAGES.items()}

    def routes(self) -> Sequence[BaseRoute]:
        """Return one route for all."""
        routes = [route for surface in self.context.surfaces for route in surface.admin_routes()]
        app = Starlette(routes=routes, exception_handlers=dict.fromkeys(_FAILURES, _refuse))
        return [Mount(OWN, app)]

    async def operations(self) -> Sequence[Served]:
        """Return nothing, because the document describes only the platform."""
        return ()

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes for the whole double."""
        return [
            Route("/health", self._health),
            *reset_routes(self.context.parts()),
            Route("/clock", self._clock),
            Route("/clock", self._change_clock, methods=["POST"]),
            *event_routes(self.context.events),
            *journal_routes(self.context.journal),
            *unknown_routes(self.context),
            *what_if_routes(
                self.context.journal,
                self.context.ledger,
                self.context.credentials,
                self.context.start_double,
            ),
            *fault_routes(self.context.faults),
        ]

    async def _health(self, _request: Request) -> Response:
        """Return the double's health, version and time; status 503 if it cannot save its state."""
        context = self.context
        status, failure = 200, {}
        try:
            await context.store.check()
        except StateError as error:
            status, failure = 503, {"error": {"type": "StateError", "message": str(error)}}
        document = {
            "status": "failing" if failure else "ok",
            **failure,
            "version": context.version,
            "pid": os.getpid(),
            "now": context.clock.now().isoformat(),
        }
        for surface in context.surfaces:
            document.update(surface.health())
        return JSONResponse(document, status)

    async def _clock(self, _request: Request) -> Response:
        """Return the platform's time."""
        return JSONResponse(self._time())

    def _time(self) -> dict[str, Any]:
        clock = self.context.clock
        return {
            "now": clock.now().isoformat(),
            "offset_s": clock.offset.total_seconds(),
            "frozen": clock.frozen,
        }

    def _publish_time(self, happened: str) -> None:
        if self.context.events.watched:
            self.context.events.publish("clock", "", happened, self._time)

    def begin_shutdown(self) -> None:
        self.context.events.close()

    async def _change_clock(self, request: Request) -> Response:
        """Stop or resume the platform's time with ``frozen``, or move it by ``advance_s``.

        The response to a move comes when everything due has been destroyed.
        """
        body = await request.body()
        try:
            frozen = _frozen(body)
            if frozen is None:
                await self.context.advance(_seconds(body))
            elif frozen:
                self.context.clock.freeze()
            else:
                self.context.clock.unfreeze()
        except ValueError as error:
            raise RefusedError(400, "BadRequest", str(error)) from None
        return await self._clock(request)


_FAILURES = (
    *(RefusedError, FaultError, HostingError, LiveError, ModelError, SandboxError, StateError),
    *(PartError, UnknownServiceError),
)
_PAGES = {
    "/health": "whether the double is alive, its version and its time",
    "/clock": "the platform's time; POST moves it or stops it",
    "/journal": "the requests, and the unknowns that their answers relied on",
    "/unknowns": "the unknowns of the specification, and the double's answers",
    "/unknowns/catalogue": "the same with questions, alternatives and the requests that relied on them",
    "/faults": "the faults that are armed; POST arms one",
    "/sessions": "the sessions of the sandbox",
    "/runtimes": "the runtimes with their instances",
    "/metrics": "metrics of the runtimes, in the format of Prometheus",
}


async def _refuse(request: Request, error: Exception) -> Response:
    return guard.render_json(request, _refusal(error))


def _refusal(error: Exception) -> Refusal:
    message = str(error)
    match error:
        case RefusedError():
            return error.refusal
        case FaultError():
            return Refusal(404 if error.field == "id" else 400, "FaultError", message)
        case StateError():
            return Refusal(error.status, "StateError", message)
        case UnknownRuntimeError() | UnknownServiceError():
            return Refusal(404, "NotFound", message)
        case TooManyListenersError():
            return Refusal(503, "TooManyListeners", message)
    return Refusal(400, "BadRequest", message)


def _frozen(body: bytes) -> bool | None:
    """Return the field ``frozen`` of a body, None if it has none."""
    document = read_json(body, 'The body must be {"advance_s": N} or {"frozen": true}')
    frozen = document.get("frozen") if isinstance(document, dict) else None
    if frozen is not None and (not isinstance(frozen, bool) or len(document) > 1):
        raise ValueError('With "frozen" the body must be {"frozen": true} or {"frozen": false}.')
    return frozen


def _seconds(body: bytes) -> dt.timedelta:
    """Return the seconds in the field ``advance_s`` of a body; raise ValueError for any other body."""
    explanation = 'The body must be {"advance_s": N} with N seconds, 0 or more'
    document = read_json(body, explanation)
    number = document.get("advance_s") if isinstance(document, dict) else None
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
        raise ValueError(f"{explanation}.")
    try:
        return dt.timedelta(seconds=number)
    except OverflowError:
        raise ValueError(f"{explanation}, not that many.") from None
