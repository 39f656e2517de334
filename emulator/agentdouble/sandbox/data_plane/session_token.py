"""Access to a session's data plane by token, and refusals in the public sandbox's envelope."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qsl, urlencode

from pydantic import Field
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket
from typing_extensions import TypedDict

from agentdouble.errors import (
    InstanceEndedError,
    UnknownSessionError,
)
from agentdouble.sandbox.session import SandboxSession, failed_error, paused_error
from agentdouble.sandbox.session_processes import SCOPE_KEY
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.workbench.wire import envelope
from agentdouble.server.guard import Refusal

if TYPE_CHECKING:
    from agentdouble.sandbox.local_processes import LocalProcesses


class Refused(Exception):  # noqa: N818 (a decision, not a failure)
    """A refused request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def render_refused(refused: Refused) -> Response:
    """Return the response to a refused request."""
    answer = envelope(None, str(refused), success=False, status=refused.status)
    if refused.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def render_refusal(refusal: Refusal) -> Response:
    """Return the response to a request that the guard refuses, in the data plane's format."""
    return render_refused(Refused(refusal.status, refusal.message))


async def sandbox_error(_connection: HTTPConnection, error: Exception) -> Response:
    """Return the response to a request that failed with a sandbox error."""
    status = 410 if isinstance(error, InstanceEndedError) else getattr(error, "status", 500)
    return render_refused(Refused(status, str(error)))


async def refused(_request: Request, error: Exception) -> Response:
    """Return the response to a request that a route refuses."""
    assert isinstance(error, Refused)
    return render_refused(error)


PREFIX = "/v1"
BESIDE = ("/a2a", "/vnc")  # of a session as well; if an application has them, they are its own
UPLOAD = "/v1/file/upload"
INSTANCE = "faasInstanceName"
TOKEN = "Authorization"  # noqa: S105 (the name of a query parameter)


class SessionQuery(TypedDict):
    """The query that names the session, besides the token."""

    faasInstanceName: Annotated[str, Field(description="The SessionId of a session.")]


class SessionTokenMiddleware:
    """Checks the token, and lets the session's processes answer: here, or on their node."""

    def __init__(self, app: ASGIApp, sessions: SandboxSessions) -> None:
        self._app = app
        self._sessions = sessions

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes of the application behind it."""
        app_routes: Sequence[BaseRoute] = getattr(self._app, "routes", ())
        return app_routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            session = await self._admit(HTTPConnection(scope))
        except Refused as refused:
            await render_refused(refused)(scope, receive, send)
            return
        await session.processes.serve(self._answer_here, scope, receive, send)

    async def _answer_here(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "query_string": _without_secrets(scope)}, receive, send)

    async def _admit(self, connection: HTTPConnection) -> SandboxSession:
        name = connection.query_params.get(INSTANCE)
        if not name:
            raise Refused(404, f"The query must name the session instance: ?{INSTANCE}=s-...")
        presented = _presented(connection)
        if not presented:
            raise Refused(
                401,
                f"The data plane of {name!r} is opened by the token of its Endpoint: keep the "
                f"query, with its {TOKEN}, or send it as a bearer token.",
            )
        try:
            session = await self._sessions.look_up(name)
        except InstanceEndedError as error:
            raise Refused(410, str(error)) from None
        except UnknownSessionError as error:
            raise Refused(404, str(error)) from None
        if not hmac.compare_digest(presented.encode(), session.token.encode()):
            raise Refused(403, f"That is not the token of the session instance {name!r}.")
        if session.readiness.failed:
            raise Refused(409, str(failed_error(session.key.user_session_id)))
        if session.lifetime.state == "paused":
            raise Refused(409, str(paused_error(session.key.user_session_id)))
        session.readiness.finish()
        return self._sessions.use(session)


async def close_gone(websocket: WebSocket, reason: str) -> None:
    """Close a connection whose target has ended."""
    await websocket.close(
        1001, reason.encode()[:120].decode("utf-8", "ignore")
    )  # 123 bytes at most


def processes_of(connection: HTTPConnection) -> LocalProcesses:
    """Return the processes of the session that an admitted request is for."""
    processes: LocalProcesses = connection.scope[SCOPE_KEY]
    return processes


def is_data_plane(connection: HTTPConnection) -> bool:
    """Return whether a request is for a session's data plane."""
    path: str = connection.scope["path"]
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in (PREFIX, *BESIDE))


def _presented(connection: HTTPConnection) -> str:
    in_query = connection.query_params.get(TOKEN)
    if in_query:
        return in_query
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _without_secrets(scope: Scope) -> bytes:
    """Return the query without session and token, which no route after the middleware needs."""
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return urlencode([(k, v) for k, v in pairs if k not in (INSTANCE, TOKEN)]).encode()
