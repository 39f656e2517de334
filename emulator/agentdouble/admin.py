"""``/_emulator/...``: the double's own routes, the only ones the specification does not know.

``admission`` says whom they answer.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from agentdouble import guard
from agentdouble.admission import Admission, AdmittingOwn
from agentdouble.clock import Clock
from agentdouble.errors import (
    FaultError,
    HostingError,
    InstanceEndedError,
    LedgerError,
    LiveError,
    SandboxError,
    StateError,
    TooManyListenersError,
    UnknownRuntimeError,
)
from agentdouble.faults import Faults
from agentdouble.faults.routes import fault_routes
from agentdouble.journal import Journal
from agentdouble.journal_routes import journal_routes
from agentdouble.ledger import Ledger
from agentdouble.sandbox.ended import Ended
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.state import Store

PREFIX = "/_emulator"
_LONGEST_ID = 18  # digits


@dataclass(frozen=True)
class Controls:
    """What the routes show and move; ``advance`` returns when what is due is destroyed.

    ``routes`` are those of the surfaces.
    """

    version: str
    clock: Clock
    journal: Journal
    ledger: Ledger
    instances: Instances
    faults: Faults
    routes: Sequence[BaseRoute]
    state: Store
    reset: Callable[[bool], Awaitable[None]]
    advance: Callable[[dt.timedelta], Awaitable[None]]


def admin_app(controls: Controls, rules: Admission) -> ASGIApp:
    """Return the ASGI application behind ``/_emulator``, mounted there."""
    routes = _Routes(controls)
    app = Starlette(
        routes=[
            Route("/health", routes.health),
            Route("/reset", routes.reset, methods=["POST"]),
            Route("/clock", routes.clock),
            Route("/clock", routes.advance, methods=["POST"]),
            *journal_routes(controls.journal),
            Route("/unknowns", routes.unknowns),
            Route("/unknowns", routes.change_unknowns, methods=["PUT"]),
            Route("/sessions", routes.sessions),
            Route("/sessions/{session_id}", routes.destroy, methods=["DELETE"]),
            Route("/sessions/{session_id}/ttl", routes.set_ttl, methods=["POST"]),
            Route("/sessions/{session_id}/pause", routes.pause, methods=["POST"]),
            Route("/sessions/{session_id}/resume", routes.resume, methods=["POST"]),
            *fault_routes(controls.faults),
            *controls.routes,
        ],
        exception_handlers={
            _RefusedError: _render_refused,
            FaultError: _render_fault,
            HostingError: _render_hosting,
            LiveError: _render_live,
            SandboxError: _render_live,
            StateError: _render_state,
        },
    )
    return AdmittingOwn(app, rules)


class _Routes:
    def __init__(self, controls: Controls) -> None:
        self._controls = controls

    async def health(self, _request: Request) -> Response:
        """Say that the double lives, which version, and what it has; 503 if it keeps nothing."""
        controls = self._controls
        status, why = await _state_of(controls.state)
        return JSONResponse(
            {
                "status": "ok" if why is None else "failing",
                **({} if why is None else {"error": {"type": "StateError", "message": why}}),
                "version": controls.version,
                "pid": os.getpid(),
                "now": controls.clock.now().isoformat(),
                "instances": len(controls.instances),
            },
            status,
        )

    async def reset(self, request: Request) -> Response:
        """Destroy every session instance, empty the journal, set the clock back.

        With ``wait=false`` it does not wait for the instances' processes to end.
        """
        await self._controls.reset(request.query_params.get("wait") != "false")
        return JSONResponse({"status": "reset"})

    async def clock(self, _request: Request) -> Response:
        """Say what time it is on the platform."""
        return JSONResponse(_clock(self._controls.clock))

    async def advance(self, request: Request) -> Response:
        """Move the platform's time by ``advance_s`` seconds."""
        try:
            await self._controls.advance(_seconds(await request.body(), "advance_s"))
        except ValueError as error:
            raise _RefusedError(400, "BadRequest", str(error)) from None
        return JSONResponse(_clock(self._controls.clock))

    async def unknowns(self, request: Request) -> Response:
        """Say which answers are in force, and which the entries of the journal relied on.

        With ``after``, the id of an entry, only those that came after it.
        """
        after = request.query_params.get("after", "0")
        if not after.isdecimal() or len(after) > _LONGEST_ID:
            raise _RefusedError(400, "BadRequest", "after must be the id of a journal entry.")
        return JSONResponse(self._unknowns(int(after)))

    async def change_unknowns(self, request: Request) -> Response:
        """Choose other answers, on top of those the double was started with, until told anew.

        A reset leaves them, so that tests can be run under an alternative.
        """
        try:
            self._controls.ledger.change(_choices(await request.body()))
        except (ValueError, LedgerError) as error:
            raise _RefusedError(400, "BadRequest", str(error)) from None
        return JSONResponse(self._unknowns(0))

    def _unknowns(self, after: int) -> Mapping[str, Any]:
        entries = [one for one in self._controls.journal.entries() if one.id > after]
        return {
            "in_force": self._controls.ledger.answers(),
            "settled": sorted(self._controls.ledger.settled),
            "relied_on": sorted({id_ for one in entries for id_ in one.unknowns}),
            "last": entries[-1].id if entries else after,
        }

    async def sessions(self, _request: Request) -> Response:
        """Return the living session instances, and why the others have ended."""
        now = self._controls.clock.now()
        instances = self._controls.instances
        living = [_session(instance, now) for instance in instances.living()]
        return JSONResponse({"sessions": living, "ended": [_ended(e) for e in instances.ended()]})

    async def destroy(self, request: Request) -> Response:
        """Destroy a session instance."""
        instance = await self._find(request)
        await self._controls.instances.destroy(instance, "destroyed by caller")
        return JSONResponse({"SessionId": instance.id, "state": "destroyed"})

    async def pause(self, request: Request) -> Response:
        """Let a session instance run nothing until it is resumed."""
        instance = await self._find(request)
        self._controls.instances.pause(instance)
        return JSONResponse(_session(instance, self._controls.clock.now()))

    async def resume(self, request: Request) -> Response:
        """Let a paused session instance run code again."""
        instance = await self._find(request)
        self._controls.instances.resume(instance)
        return JSONResponse(_session(instance, self._controls.clock.now()))

    async def set_ttl(self, request: Request) -> Response:
        """Let a session instance live for ``ttl_s`` seconds from now on."""
        instance = await self._find(request)
        try:
            ttl = _seconds(await request.body(), "ttl_s")
            self._controls.instances.set_ttl(instance, ttl)
        except (ValueError, OverflowError) as error:
            raise _RefusedError(400, "BadRequest", str(error)) from None
        return JSONResponse(_session(instance, self._controls.clock.now()))

    async def _find(self, request: Request) -> Instance:
        session_id = request.path_params["session_id"]
        try:
            instance = await self._controls.instances.by_id(session_id)
        except InstanceEndedError as error:
            raise _RefusedError(404, "NotFound", str(error)) from None
        if instance is None:
            raise _RefusedError(404, "NotFound", f"There is no session instance {session_id!r}.")
        return instance


async def _state_of(state: Store) -> tuple[int, str | None]:
    """Return the status of a double with this state, and why it fails if it does."""
    try:
        await state.check()
    except StateError as error:
        return 503, str(error)
    return 200, None


class _RefusedError(Exception):
    """A request that is refused, and how that is said."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.refusal = guard.Refusal(status, kind, message)


async def _render_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, _RefusedError)
    return guard.render_json(request, error.refusal)


async def _render_fault(request: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, FaultError) and error.field == "id" else 400
    return guard.render_json(request, guard.Refusal(status, "FaultError", str(error)))


async def _render_hosting(request: Request, error: Exception) -> Response:
    status, kind = 400, "BadRequest"
    if isinstance(error, UnknownRuntimeError):
        status, kind = 404, "NotFound"
    return guard.render_json(request, guard.Refusal(status, kind, str(error)))


async def _render_live(request: Request, error: Exception) -> Response:
    status, kind = 400, "BadRequest"
    if isinstance(error, TooManyListenersError):
        status, kind = 503, "TooManyListeners"
    return guard.render_json(request, guard.Refusal(status, kind, str(error)))


async def _render_state(request: Request, error: Exception) -> Response:
    assert isinstance(error, StateError)
    return guard.render_json(request, guard.Refusal(error.status, "StateError", str(error)))


def _clock(clock: Clock) -> Mapping[str, Any]:
    return {"now": clock.now().isoformat(), "offset_s": clock.offset.total_seconds()}


def _session(instance: Instance, now: dt.datetime) -> Mapping[str, Any]:
    return {
        "SessionId": instance.id,
        "UserSessionId": instance.key.user_session_id,
        "ToolId": instance.key.tool_id,
        "state": instance.state,
        "created_at": instance.created_at.isoformat(),
        "deadline": instance.deadline.isoformat(),
        "remaining_s": (instance.deadline - now).total_seconds(),
        "executions": instance.executions,
        "pids": list(instance.pids),
        "home": None if instance.home is None else str(instance.home),
    }


def _ended(ended: Ended) -> Mapping[str, Any]:
    return {
        "SessionId": ended.id,
        "UserSessionId": ended.key.user_session_id,
        "ToolId": ended.key.tool_id,
        "state": "destroyed",
        "ended_at": ended.at.isoformat(),
        "reason": ended.reason,
        "executions": ended.executions,
    }


def _choices(body: bytes) -> Mapping[str, str]:
    explanation = 'The body must be {"U-...": "alternative"}'
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{explanation}: {error}.") from None
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise ValueError(f"{explanation}.")
    return document


def _seconds(body: bytes, name: str) -> dt.timedelta:
    explanation = f'The body must be {{"{name}": N}} with N seconds, 0 or more'
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{explanation}: {error}.") from None
    seconds = document.get(name) if isinstance(document, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise ValueError(f"{explanation}.")
    try:
        return dt.timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"{explanation}, and not that many.") from None
