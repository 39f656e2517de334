"""``/_emulator/...``: the double's own routes, the only ones outside the specification.

All but ``guard.PUBLIC`` need the double's token, which ``guard`` checks.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agentdouble import errors
from agentdouble.core import ledger
from agentdouble.core.evidence import Evidence
from agentdouble.core.ledger import Ledger, Unknown
from agentdouble.faults.admin_routes import fault_routes
from agentdouble.journal.event_routes import event_routes
from agentdouble.journal.routes import journal_routes
from agentdouble.journal.what_if_routes import what_if_routes
from agentdouble.server import guard
from agentdouble.server.guard import OWN, Refusal
from agentdouble.surfaces.surface import RouteRefusedError, Surface, SurfaceContext, read_json

_LONGEST_ID = 18  # digits
_FAILURES = (
    *(RouteRefusedError, errors.FaultError, errors.HostingError, errors.LedgerError),
    *(errors.LiveError, errors.ModelError, errors.PartError, errors.SandboxError),
    *(errors.StateError, errors.UnknownServiceError),
)
_PAGES = {
    "/health": "whether the double is alive, its version and its time",
    "/surfaces": "the surfaces, and what they have now",
    "/clock": "the platform's time; POST moves it or stops it",
    "/journal": "the requests, and the unknowns that their answers relied on",
    "/unknowns": "the unknowns of the specification, and the double's answers",
    "/unknowns/catalogue": "the same with questions, alternatives and the requests that relied on them",
    "/faults": "the faults that are armed; POST arms one",
    "/sessions": "the sessions of the sandbox",
    "/runtimes": "the runtimes with their instances",
    "/metrics": "metrics of the runtimes, in the format of Prometheus",
}


class Admin(Surface):
    """The double's own routes, including those of the other surfaces."""

    name = "The double's own"
    is_documented = False

    def __init__(self, context: SurfaceContext) -> None:
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

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes for the whole double."""
        return [
            Route("/health", self._health),
            Route("/surfaces", self._surfaces),
            Route("/reset", self._reset, methods=["POST"]),
            Route("/clock", self._clock),
            Route("/clock", self._change_clock, methods=["POST"]),
            *event_routes(self.context.events),
            *journal_routes(self.context.journal),
            Route("/unknowns", self._unknowns),
            Route("/unknowns", self._change_unknowns, methods=["PUT"]),
            Route("/unknowns/catalogue", self._catalogue),
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
        except errors.StateError as error:
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

    async def _surfaces(self, _request: Request) -> Response:
        """Return the surfaces: their paths, and what they have now."""
        surfaces = [
            {"name": surface.name, "state": surface.state(), "paths": dict(paths)}
            for surface in self.context.surfaces
            if (paths := surface.paths())
        ]
        return JSONResponse({"surfaces": surfaces})

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
            raise RouteRefusedError(str(error)) from None
        return await self._clock(request)

    async def _reset(self, request: Request) -> Response:
        """Reset the double, except for the parts that ``keep`` names, separated by commas.

        With ``wait=false`` it does not wait for the processes of sessions to end.
        """
        query = request.query_params
        keep = query.get("keep")
        named = None if keep is None else [name for name in keep.split(",") if name]
        await self.context.parts().reset(query.get("wait") != "false", named)
        return JSONResponse({"status": "reset"})

    async def _unknowns(self, request: Request) -> Response:
        """Return the answers in force, and those that journal entries relied on.

        With ``after``, the id of an entry, only later entries count.
        """
        after = request.query_params.get("after", "0")
        if not after.isdecimal() or len(after) > _LONGEST_ID:
            raise RouteRefusedError("after must be the id of a journal entry.")
        return JSONResponse(self._answers_since(int(after)))

    async def _change_unknowns(self, request: Request) -> Response:
        """Choose other answers, on top of those of the double's start, until the next change.

        A reset keeps them, so that tests can run under an alternative.
        """
        self.context.ledger.change(_choices(await request.body()))
        if self.context.events.watched:
            self.context.events.publish("unknowns", "", "chosen", self._answers)
        return JSONResponse(self._answers_since(0))

    def _answers(self) -> Mapping[str, Mapping[str, str]]:
        return {"in_force": self.context.ledger.answers()}

    def _answers_since(self, after: int) -> dict[str, Any]:
        in_force = self.context.ledger
        entries = [entry for entry in self.context.journal.entries() if entry.id > after]
        return {
            "in_force": in_force.answers(),
            "settled": sorted(in_force.settled),
            "relied_on": sorted({id_ for entry in entries for id_ in entry.unknowns}),
            "last": entries[-1].id if entries else after,
        }

    async def _catalogue(self, _request: Request) -> Response:
        """Return each unknown with its alternatives, and the entries that relied on it."""
        entries: dict[str, list[int]] = {}
        for entry in self.context.journal.entries():
            for id_ in entry.unknowns:
                entries.setdefault(id_, []).append(entry.id)
        unknowns = ledger.unknowns().values()
        documents = [
            _shown_unknown(self.context.ledger, unknown, entries.get(unknown.id, ()))
            for unknown in unknowns
        ]
        return JSONResponse({"unknowns": documents, "summary": self.context.ledger.summary()})


async def _refuse(request: Request, error: Exception) -> Response:
    return guard.render_json(request, _refusal(error))


def _refusal(error: Exception) -> Refusal:
    message = str(error)
    match error:
        case RouteRefusedError():
            return error.refusal
        case errors.FaultError():
            return Refusal(404 if error.field == "id" else 400, "FaultError", message)
        case errors.StateError():
            return Refusal(error.status, "StateError", message)
        case errors.UnknownRuntimeError() | errors.UnknownServiceError():
            return Refusal(404, "NotFound", message)
        case errors.TooManyListenersError():
            return Refusal(503, "TooManyListeners", message)
    return Refusal(400, "BadRequest", message)


def _frozen(body: bytes) -> bool | None:
    """Return the field ``frozen`` of a body, None if it has none."""
    document = read_json(body, 'The body must be {"advance_s": N} or {"frozen": true}')
    frozen = document.get("frozen") if isinstance(document, dict) else None
    if frozen is not None and (not isinstance(frozen, bool) or len(document) > 1):
        raise RouteRefusedError(
            'With "frozen" the body must be {"frozen": true} or {"frozen": false}.'
        )
    return frozen


def _seconds(body: bytes) -> dt.timedelta:
    """Return the seconds in the field ``advance_s`` of a body; raise ValueError for any other body."""
    explanation = 'The body must be {"advance_s": N} with N seconds, 0 or more'
    document = read_json(body, explanation)
    number = document.get("advance_s") if isinstance(document, dict) else None
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
        raise RouteRefusedError(f"{explanation}.")
    try:
        return dt.timedelta(seconds=number)
    except OverflowError:
        raise RouteRefusedError(f"{explanation}, not that many.") from None


def _shown_unknown(in_force: Ledger, unknown: Unknown, entries: Sequence[int]) -> dict[str, Any]:
    answers = (unknown.default, *unknown.alternatives)
    return {
        "id": unknown.id,
        "section": unknown.section,
        "question": unknown.question,
        "evidence": [_shown_evidence(it) for it in in_force.evidence(unknown.id)],
        "rests_on": in_force.rests_on(unknown.id),
        "in_force": in_force.answer(unknown.id).name,
        "settled": unknown.id in in_force.settled,
        "alternatives": [
            {
                "name": answer.name,
                "meaning": answer.meaning,
                "built": answer.built,
                "default": answer is unknown.default,
            }
            for answer in answers
        ],
        "entries": [*entries],
    }


def _shown_evidence(evidence: Evidence) -> dict[str, str]:
    """Return the fields that an evidence has, as in ``unknowns.toml``."""
    return {name: str(value) for name, value in asdict(evidence).items() if value is not None}


def _choices(body: bytes) -> Mapping[str, str]:
    explanation = 'The body must be {"U-...": "alternative"}'
    document = read_json(body, explanation)
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise RouteRefusedError(f"{explanation}.")
    return document
