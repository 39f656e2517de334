"""``/_emulator/sessions``: facts about sandbox sessions that no action of the platform returns.

====================================== =========================================================
``GET  /sessions``                     ``{"sessions": [...], "ended": [...]}``: see ``session_events``
``POST /sessions/{id}/interrupt``      ``{"SessionId", "interrupted": ["python3"]}``: the languages
                                       whose code was interrupted
``GET  /sessions/{id}/variables``      ``{"SessionId", "language", "state", "variables":
       ``?language=python3``           [{"name", "type", "repr", "size"}], "left_out"}``, ``state``
                                       idle, busy, none (no kernel yet) or silent
====================================== =========================================================

``{id}`` is the SessionId. An unknown or ended session is 404. CreateSession, PauseSession and the
other actions do the rest.
"""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.core.clock import Clock
from agentdouble.errors import InstanceEndedError, UnknownSessionError
from agentdouble.sandbox import languages
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.session import ended, living
from agentdouble.surfaces.surface import RefusedError


def session_routes(instances: Instances, clock: Clock) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise RefusedError."""
    routes = _Routes(instances, clock)
    return [
        Route("/sessions", routes.all),
        Route("/sessions/{session_id}/interrupt", routes.interrupt, methods=["POST"]),
        Route("/sessions/{session_id}/variables", routes.variables),
    ]


class _Routes:
    def __init__(self, instances: Instances, clock: Clock) -> None:
        self._instances = instances
        self._clock = clock

    async def all(self, _request: Request) -> Response:
        """Return the living session instances, and the reasons why others ended."""
        self._instances.destroy_due()
        alive = [living(instance, self._clock) for instance in self._instances.living()]
        ended_sessions = [ended(instance) for instance in self._instances.ended()]
        return JSONResponse({"sessions": alive, "ended": ended_sessions})

    async def interrupt(self, request: Request) -> Response:
        """Interrupt the code that runs in a session; return when it has ended, or after 2 s."""
        instance = await self._find(request)
        return _json({"SessionId": instance.id, "interrupted": [*await instance.interrupt()]})

    async def variables(self, request: Request) -> Response:
        """Return the variables of a session's idle kernel; this does not count as use."""
        instance = await self._find(request)
        language = request.query_params.get("language", "python3")
        kind = languages.find(language)
        if kind is not languages.PYTHON:
            message = f"Variables of {kind.display_name} cannot be listed, only those of Python."
            raise RefusedError(501, "NotImplemented", message)
        listed = await instance.list_variables()
        document = {
            "SessionId": instance.id,
            "language": language,
            "state": listed.state,
            "variables": [*listed.variables],
            "left_out": listed.omitted,
        }
        return _json(document)

    async def _find(self, request: Request) -> Instance:
        session_id = request.path_params["session_id"]
        try:
            return await self._instances.look_up(session_id)
        except InstanceEndedError as error:
            raise RefusedError(404, "NotFound", str(error)) from None
        except UnknownSessionError:
            message = f"No session instance {session_id!r}."
            raise RefusedError(404, "NotFound", message) from None


def _json(value: object) -> Response:
    """Return JSON with escapes, because texts of a session may not be valid Unicode."""
    return Response(json.dumps(value), media_type="application/json")
