"""``/_emulator/sessions``: routes that show, destroy, pause and prolong sandbox sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble.clock import Clock
from agentdouble.errors import InstanceEndedError, UnknownSessionError
from agentdouble.openapi import operation
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.session_events import EndedSession, LivingSession, ended, living
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
        alive = [living(one, self._clock) for one in self._instances.living()]
        gone = [ended(one) for one in self._instances.ended()]
        return JSONResponse({"sessions": alive, "ended": gone})

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
        return JSONResponse(living(instance, self._clock))

    @operation(LivingSession, errors=(404,))
    async def resume(self, request: Request) -> Response:
        """Let a paused session instance run again."""
        instance = await self._find(request)
        self._instances.resume(instance)
        return JSONResponse(living(instance, self._clock))

    @operation(LivingSession, body=Ttl, errors=(404,))
    async def set_ttl(self, request: Request) -> Response:
        """Set a session instance to live for ``ttl_s`` seconds from now."""
        instance = await self._find(request)
        try:
            self._instances.set_ttl(instance, seconds(await request.body(), "ttl_s"))
        except (ValueError, OverflowError) as error:
            raise RefusedError(400, "BadRequest", str(error)) from None
        return JSONResponse(living(instance, self._clock))

    async def _find(self, request: Request) -> Instance:
        session_id = request.path_params["session_id"]
        try:
            return await self._instances.look_up(session_id)
        except InstanceEndedError as error:
            raise RefusedError(404, "NotFound", str(error)) from None
        except UnknownSessionError:
            message = f"There is no session instance {session_id!r}."
            raise RefusedError(404, "NotFound", message) from None
