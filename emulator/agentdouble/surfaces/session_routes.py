"""``/_emulator/sessions``: routes that begin, show, destroy, pause and prolong sandbox sessions.

===================================== =========================================================
``GET    /sessions``                  ``{"sessions": [LivingSession], "ended": [EndedSession]}``
``POST   /sessions``                  a body of CreateSession, ``ToolId`` the double's by default;
                                      201 with the LivingSession, also if it lives already
``DELETE /sessions/{id}``             ends it
``POST   /sessions/{id}/pause``       and ``/resume``, ``/ttl`` ``{"ttl_s": 60}``: LivingSession
``GET    /sessions/{id}/log?limit=``  ``{"SessionId", "Logs": text}``, also of an ended session
``POST   /sessions/{id}/run``         see ``session_code_routes``, and so for
                                      ``/interrupt`` and ``/variables``
``...    /sessions/{id}/v1/...``      see ``session_plane_routes``
===================================== =========================================================

``{id}`` is the SessionId. An unknown or ended session is 404.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import NotRequired, TypedDict

from agentdouble.clock import Clock
from agentdouble.control_plane import endpoints
from agentdouble.errors import InstanceEndedError, SandboxError, UnknownSessionError
from agentdouble.openapi import Answer, operation
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.session import LINES
from agentdouble.sandbox.session_events import EndedSession, LivingSession, ended, living
from agentdouble.surfaces.admin import RefusedError, seconds
from agentdouble.surfaces.own_requests import Actions, as_refusals, json_object, late_actions


def session_routes(
    instances: Instances, clock: Clock, tool_id: str, actions: Actions
) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise RefusedError.

    ``tool_id`` is the tool of sessions that name none; ``actions`` returns those of the sandbox.
    """
    routes = _Routes(instances, clock, tool_id, actions)
    return [
        Route("/sessions", routes.all),
        Route("/sessions", routes.begin, methods=["POST"]),
        Route("/sessions/{session_id}/log", routes.log),
        Route("/sessions/{session_id}", routes.destroy, methods=["DELETE"]),
        Route("/sessions/{session_id}/ttl", routes.set_ttl, methods=["POST"]),
        Route("/sessions/{session_id}/pause", routes.pause, methods=["POST"]),
        Route("/sessions/{session_id}/resume", routes.resume, methods=["POST"]),
    ]


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


class Begin(TypedDict):
    """The fields of CreateSession; ToolId is the double's tool by default."""

    ToolId: NotRequired[str]
    UserSessionId: NotRequired[str]
    Ttl: NotRequired[Annotated[int, Field(ge=1)]]
    TtlUnit: NotRequired[Literal["second", "minute"]]
    Envs: NotRequired[list[dict[str, str]]]


class Logs(TypedDict):
    """The log of a session: a line for each thing that happened, with its time."""

    SessionId: str
    Logs: str


class LogQuery(TypedDict, total=False):
    """How many lines, the last ones."""

    limit: Annotated[int, Field(ge=1, le=LINES)]


class _Routes:
    def __init__(self, instances: Instances, clock: Clock, tool_id: str, actions: Actions) -> None:
        self._instances = instances
        self._clock = clock
        self._tool_id = tool_id
        self._actions = actions

    @operation(ShownSessions)
    async def all(self, _request: Request) -> Response:
        """Return the living session instances, and the reasons why others ended."""
        self._instances.destroy_due()
        alive = [self._shown(one) for one in self._instances.living()]
        gone = [ended(one) for one in self._instances.ended()]
        return JSONResponse({"sessions": alive, "ended": gone})

    @operation(Answer(LivingSession, 201), body=Begin, errors=(404, SandboxError))
    async def begin(self, request: Request) -> Response:
        """Begin a session, or return the living one with the same UserSessionId."""
        asked = await json_object(await request.body(), Begin.__annotations__)
        with as_refusals(), endpoints.seen_at(str(request.base_url)):
            create = (await late_actions(self._actions))["CreateSession"]
            made = await create({"ToolId": self._tool_id, **asked})
            instance = await self._instances.look_up(made["SessionId"])
        return JSONResponse(self._shown(instance), 201)

    @operation(Logs, query=LogQuery, errors=(404,))
    async def log(self, request: Request) -> Response:
        """Return the log of a session, which is kept for a while after its end."""
        limit = request.query_params.get("limit", str(LINES))
        if not limit.isdecimal() or not 1 <= int(limit[:6]) <= LINES:
            message = f"limit must be a number of lines from 1 to {LINES}, not {limit[:40]!r}."
            raise RefusedError(400, "BadRequest", message)
        session_id = request.path_params["session_id"]
        return JSONResponse({"SessionId": session_id, "Logs": await self._log(request, int(limit))})

    @operation(Destroyed, errors=(404,))
    async def destroy(self, request: Request) -> Response:
        """Destroy a session instance."""
        instance = await find_instance(self._instances, request)
        await self._instances.destroy(instance, "destroyed by caller")
        return JSONResponse({"SessionId": instance.id, "state": "destroyed"})

    @operation(LivingSession, errors=(404,))
    async def pause(self, request: Request) -> Response:
        """Stop a session instance from running anything until it is resumed."""
        instance = await find_instance(self._instances, request)
        self._instances.pause(instance)
        return JSONResponse(self._shown(instance))

    @operation(LivingSession, errors=(404,))
    async def resume(self, request: Request) -> Response:
        """Let a paused session instance run again."""
        instance = await find_instance(self._instances, request)
        self._instances.resume(instance)
        return JSONResponse(self._shown(instance))

    @operation(LivingSession, body=Ttl, errors=(404,))
    async def set_ttl(self, request: Request) -> Response:
        """Set a session instance to live for ``ttl_s`` seconds from now."""
        instance = await find_instance(self._instances, request)
        try:
            self._instances.set_ttl(instance, seconds(await request.body(), "ttl_s"))
        except (ValueError, OverflowError) as error:
            raise RefusedError(400, "BadRequest", str(error)) from None
        return JSONResponse(self._shown(instance))

    async def _log(self, request: Request, limit: int) -> str:
        session_id = request.path_params["session_id"]
        with contextlib.suppress(UnknownSessionError):
            gone = self._instances.look_up_ended(session_id)
            if gone.log is not None:
                return gone.log.text(limit)
        return (await find_instance(self._instances, request)).log.text(limit)

    def _shown(self, instance: Instance) -> LivingSession:
        return living(instance, self._clock)


async def find_instance(instances: Instances, request: Request) -> Instance:
    """Return the living instance that a path names; raise RefusedError."""
    session_id = request.path_params["session_id"]
    try:
        return await instances.look_up(session_id)
    except InstanceEndedError as error:
        raise RefusedError(404, "NotFound", str(error)) from None
    except UnknownSessionError:
        message = f"There is no session instance {session_id!r}."
        raise RefusedError(404, "NotFound", message) from None
