"""``/_emulator/sessions``: routes that show, destroy, pause and prolong sandbox sessions."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble.clock import Clock
from agentdouble.errors import InstanceEndedError, UnknownSessionError
from agentdouble.openapi import operation
from agentdouble.sandbox.ended_instances import EndedInstance
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.surfaces.admin import RefusedError, seconds


def session_routes(instances: Instances, clock: Clock) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise RefusedError."""
    routes = _Routes(instances, clock)
    return [
        Route("/sessions", routes.all),
        Route("/sessions/{session_id}", routes.destroy, methods=["DELETE"]),
        Route("/sessions/{session_id}/ttl", routes.set_ttl, methods=["POST"]),
        Route("/sessions/{session_id}/pause", routes.pause, methods=["POST"]),
        Route("/sessions/{session_id}/resume", routes.resume, methods=["POST"]),
    ]


class LivingSession(TypedDict):
    """A living session instance."""

    SessionId: str
    UserSessionId: str
    ToolId: str
    state: str
    created_at: str
    deadline: str
    remaining_s: float
    executions: int
    pids: list[int]
    home: str | None


class EndedSession(TypedDict):
    """A session instance that has ended."""

    SessionId: str
    UserSessionId: str
    ToolId: str
    state: Literal["destroyed"]
    ended_at: str
    reason: str
    executions: int


class ShownSessions(TypedDict):
    """The session instances that live, and some that have ended."""

    sessions: list[LivingSession]
    ended: list[EndedSession]


class Destroyed(TypedDict):
    """A destroyed session instance."""

    SessionId: str
    state: Literal["destroyed"]


class Ttl(TypedDict):
    """How long a session lives from now on, in seconds."""

    ttl_s: Annotated[float, Field(ge=0)]


class _Routes:
    def __init__(self, instances: Instances, clock: Clock) -> None:
        self._instances = instances
        self._clock = clock

    @operation(ShownSessions)
    async def all(self, _request: Request) -> Response:
        """Return the living session instances, and the reasons why others ended."""
        self._instances.destroy_due()
        living = [self._shown(instance) for instance in self._instances.living()]
        ended = [_ended(one) for one in self._instances.ended()]
        return JSONResponse({"sessions": living, "ended": ended})

    @operation(Destroyed, errors=(404,))
    async def destroy(self, request: Request) -> Response:
        """Destroy a session instance."""
        instance = await self._find(request)
        await self._instances.destroy(instance, "destroyed by caller")
        return JSONResponse({"SessionId": instance.id, "state": "destroyed"})

    @operation(LivingSession, errors=(404,))
    async def pause(self, request: Request) -> Response:
        """Stop a session instance from running anything until it is resumed."""
        instance = await self._find(request)
        self._instances.pause(instance)
        return JSONResponse(self._shown(instance))

    @operation(LivingSession, errors=(404,))
    async def resume(self, request: Request) -> Response:
        """Let a paused session instance run again."""
        instance = await self._find(request)
        self._instances.resume(instance)
        return JSONResponse(self._shown(instance))

    @operation(LivingSession, body=Ttl, errors=(404,))
    async def set_ttl(self, request: Request) -> Response:
        """Set a session instance to live for ``ttl_s`` seconds from now."""
        instance = await self._find(request)
        try:
            self._instances.set_ttl(instance, seconds(await request.body(), "ttl_s"))
        except (ValueError, OverflowError) as error:
            raise RefusedError(400, "BadRequest", str(error)) from None
        return JSONResponse(self._shown(instance))

    async def _find(self, request: Request) -> Instance:
        session_id = request.path_params["session_id"]
        try:
            return await self._instances.look_up(session_id)
        except InstanceEndedError as error:
            raise RefusedError(404, "NotFound", str(error)) from None
        except UnknownSessionError:
            message = f"There is no session instance {session_id!r}."
            raise RefusedError(404, "NotFound", message) from None

    def _shown(self, instance: Instance) -> LivingSession:
        remaining: dt.timedelta = instance.deadline - self._clock.now()
        return {
            "SessionId": instance.id,
            "UserSessionId": instance.key.user_session_id,
            "ToolId": instance.key.tool_id,
            "state": instance.state,
            "created_at": instance.created_at.isoformat(),
            "deadline": instance.deadline.isoformat(),
            "remaining_s": remaining.total_seconds(),
            "executions": instance.executions,
            "pids": list(instance.pids),
            "home": None if instance.home is None else str(instance.home),
        }


def _ended(ended: EndedInstance) -> EndedSession:
    return {
        "SessionId": ended.id,
        "UserSessionId": ended.key.user_session_id,
        "ToolId": ended.key.tool_id,
        "state": "destroyed",
        "ended_at": ended.at.isoformat(),
        "reason": ended.reason,
        "executions": ended.executions,
    }
