"""The routes of ``/v1/...``: answered here, forwarded to the workbench, or not implemented."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute, request_response, websocket_session
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.core.threads import import_in_thread
from agentdouble.errors import NotBuiltError, SandboxError
from agentdouble.openapi import hidden
from agentdouble.sandbox.data_plane import session_token, terminal_routes
from agentdouble.sandbox.data_plane.browser_routes import BrowserRoutes
from agentdouble.sandbox.data_plane.code_routes import CodeRoutes
from agentdouble.sandbox.data_plane.description import Description
from agentdouble.sandbox.data_plane.session_token import Refused, SessionTokenMiddleware
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.workbench.wire import Paths, invalid, unrouted
from agentdouble.settings import Settings

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FORWARDING = "agentdouble.sandbox.data_plane.forwarding"
_FORWARDED = ("bash", "file", "shell")
NOT_BUILT = {
    "/a2a": "The agent of a session (/a2a)",
    "/vnc": "The screen of a session (/vnc)",
    "/v1/browser/actions": "Mouse and keyboard as a route (/v1/browser/actions; use cdp_url)",
    "/v1/browser": "This route of a session's browser",
    "/v1/mcp": "The MCP hub of a session",
    "/v1/nodejs": "The Node.js runtime of a session",
    "/v1/sandbox/packages": "The list of a sandbox's packages",
    **{
        f"/v1/shell/{name}": f"The shell route {name} (use /v1/bash)"
        for name in ("view", "write", "kill", "sessions")
    },
    terminal_routes.PAGE: "The page of a terminal (/v1/shell/terminal; connect to /v1/shell/ws)",
    "/v1/file/grep": "The file operation grep",
    "/v1/file/glob": "The file operation glob",
    "/v1/file/watch": "The file operation watch",
    "/v1/file/str_replace_editor": "The file operation str_replace_editor",
}


def data_plane(sessions: SandboxSessions, settings: Settings, version: str) -> ASGIApp:
    """Return the ASGI application for ``/v1``; it receives whole paths."""
    forwarding = _Forwarding()
    app = Starlette(
        routes=[
            *BrowserRoutes().routes(),
            terminal_routes.route(),
            *_not_built(),
            Description(settings, version).route(),
            *CodeRoutes(sessions, settings).routes(),
            WebSocketRoute("/v1/shell/ws", forwarding),
            *(
                Route(f"/v1/{name}/{{rest:path}}", forwarding, methods=_METHODS)
                for name in _FORWARDED
            ),
            Route("/{rest:path}", _unknown, methods=_METHODS),
        ],
        exception_handlers={
            Refused: session_token.refused,
            SandboxError: session_token.sandbox_error,
            NotBuiltError: session_token.sandbox_error,
            HTTPException: unrouted,
            ValidationError: invalid,
        },
    )
    return SessionTokenMiddleware(app, sessions)


class _Forwarding:
    """Forwards requests and terminals to the session's workbench, and knows its routes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await import_in_thread(_FORWARDING)
        from agentdouble.sandbox.data_plane import forwarding  # slow: httpx, 0.1 s

        if scope["type"] == "websocket":
            await websocket_session(forwarding.terminal)(scope, receive, send)
        else:
            await request_response(forwarding.forward)(scope, receive, send)

    async def late_routes(self) -> Sequence[BaseRoute]:
        """Return the routes of every workbench."""
        await import_in_thread("agentdouble.sandbox.workbench.process")
        from agentdouble.sandbox.workbench.process import build  # slow: only its routes are needed

        return build(Paths(), None).routes


def _not_built() -> list[BaseRoute]:
    def routes(path: str, feature: str) -> list[BaseRoute]:
        @hidden
        async def refuse(_request: Request) -> Response:
            raise NotBuiltError(feature)

        paths = (path, path + "/{rest:path}")
        return [Route(template, refuse, methods=_METHODS) for template in paths]

    return [route for path, feature in NOT_BUILT.items() for route in routes(path, feature)]


@hidden
async def _unknown(request: Request) -> Response:
    path = request.scope["path"]
    raise Refused(404, f"The data plane has no {path} for {request.method}.")
