"""The way from the guard to the surfaces: who needs no API key, in whose shape a refusal is, and
which surface a path belongs to that several have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble import guard, ledger, mcp_hosting
from agentdouble.admission import Address, Admission, Caller
from agentdouble.apps.a2a import paths as a2a_paths
from agentdouble.control_plane import (
    ControlPlane,
    is_control_plane,
    names_action,
    refuse_method,
    render_refusal,
)
from agentdouble.run_code import hosted_by
from agentdouble.sandbox import data_plane
from agentdouble.settings import Settings


class Hosting:
    """Lets the run_code of hosted applications find this double, whatever the environment says."""

    def __init__(self, app: ASGIApp, variables: Mapping[str, str]) -> None:
        self._app = app
        self._variables = variables

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with hosted_by(self._variables):
            await self._app(scope, receive, send)


class Health:
    """``/health``, which both modes have: the application's or the API server's."""

    def __init__(self, application: ASGIApp, api_server: ASGIApp) -> None:
        self._apps = {"simple-first": application, "api-server": api_server}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._apps[ledger.choose("U-HEALTH-CLASH")](scope, receive, send)


class Root:
    """``POST /``, which an Action in the query makes the control plane's."""

    def __init__(self, control_plane: ControlPlane, otherwise: ASGIApp) -> None:
        self._control_plane = control_plane
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if is_control_plane(request):
            answer = await self._control_plane.dispatch(request)
            await answer(scope, receive, send)
        else:
            await self._otherwise(scope, receive, send)


class NotPosted:
    """``/`` by another method than POST: an Action in the query is told that it is to be POSTed."""

    def __init__(self, otherwise: ASGIApp) -> None:
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = refuse_method(request) if names_action(request) else self._otherwise
        await answer(scope, receive, send)


def shared(settings: Settings) -> guard.Wrap:
    """Return what has an application tell browsers which web pages may call it, if any may."""
    if not settings.allow_origins:
        return lambda app: app
    return partial(
        CORSMiddleware,
        allow_origins=settings.allow_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id"],
    )


def admission(
    settings: Settings,
    rules: guard.Policy,
    caller: Callable[[Address, Address], Awaitable[Caller]],
    *,
    asks: guard.SignsItself,
    pages: guard.SignsItself,
) -> Admission:
    """Return who may call what asks for no credentials, and the double's own routes.

    ``asks`` tells requests for applications that have keys, besides those that the policy knows.
    """
    return Admission(
        caller,
        asks=lambda connection: rules.signed(connection) or asks(connection),
        pages=pages,
        origins=rules.origins,
        keyed=rules.api_key is not None,
        let_sessions=settings.allow_sessions or settings.network == "none",
        render=rules.render,
    )


def policy(settings: Settings, authenticates: guard.SignsItself) -> guard.Policy:
    """Return who may call what, and in whose shape a refusal is.

    ``authenticates`` tells requests for runtimes that ask for keys or tokens of their own.
    """
    beyond_loopback = settings.host not in guard.LOOPBACK_NAMES
    key = settings.api_key
    return guard.Policy(
        hosts=guard.names((*settings.allow_hosts, settings.host)),
        any_address=beyond_loopback,
        origins=frozenset(settings.allow_origins),
        body_limit=settings.body_limit,
        body_limits={
            data_plane.UPLOAD: settings.upload_limit,
            "/mcp": min(mcp_hosting.BODY_LIMIT, settings.body_limit),
        },
        api_key=None if key is None else key.get_secret_value(),
        signed=_signs_itself(settings, authenticates),
        render=_render,
    )


def _signs_itself(settings: Settings, authenticates: guard.SignsItself) -> guard.SignsItself:
    """Return which requests need no API key: those whose signature, token or key is verified."""
    asks_itself: list[guard.SignsItself] = [_is_data_plane, _is_service, authenticates]
    if settings.chosen().answer("U-SIGNING").name != "none":
        asks_itself.append(is_control_plane)
    return lambda connection: any(asks(connection) for asks in asks_itself)


def _is_data_plane(connection: HTTPConnection) -> bool:
    """Whether a request is a session's; A2A's version 0.3 has paths below ``/v1`` too."""
    return data_plane.is_data_plane(connection) and not a2a_paths.is_a2a(connection)


def _is_service(connection: HTTPConnection) -> bool:
    path: str = connection.scope["path"]
    return path.startswith(mcp_hosting.PREFIX)


def _render(connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    if is_control_plane(connection):
        return render_refusal(connection, refusal)
    if _is_data_plane(connection):
        return data_plane.render_refusal(refusal)
    if mcp_hosting.is_mcp(connection):
        return mcp_hosting.render_refusal(refusal)
    if a2a_paths.is_a2a(connection) or connection.scope["path"] == "/":
        return a2a_paths.render_refusal(connection, refusal)
    return guard.render_json(connection, refusal)
