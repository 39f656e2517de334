"""The middleware between the server and the surfaces, and the order of the routes."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Router
from starlette.types import ASGIApp, Lifespan

from agentdouble import jupyter, mcp_hosting, model
from agentdouble.apps.a2a import paths as a2a_paths
from agentdouble.control_plane.dispatch import is_control_plane, render_refusal
from agentdouble.core.environment import LOOPBACK_NAMES, jupyter_key, model_key
from agentdouble.faults.middleware import FaultMiddleware
from agentdouble.journal.failures import ServerErrorMiddleware
from agentdouble.journal.middleware import JournalMiddleware
from agentdouble.sandbox.data_plane import session_token
from agentdouble.server import certificates, guard
from agentdouble.server.guard import OWN
from agentdouble.settings import Settings
from agentdouble.surfaces.applications import HostedApplications
from agentdouble.surfaces.model_endpoint import ModelEndpoint
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.surface import SurfaceContext


def application(
    context: SurfaceContext, policy: guard.Policy, lifespan: Lifespan[Router]
) -> ASGIApp:
    """Return the whole double: the surfaces, and the middleware in front of them."""
    own = OWN + "/"
    # Not Starlette's application: its middleware for failures would be a second one.
    app: ASGIApp = ExceptionMiddleware(Router(_routes(context), lifespan=lifespan))
    app = FaultMiddleware(app, context.faults, policy.render, except_prefix=own)
    app = ServerErrorMiddleware(app, policy.render)
    app = JournalMiddleware(
        app, context.journal, context.ledger, context.environment, except_prefix=own
    )
    app = guard.GuardMiddleware(app, policy)
    return guard.AllowedPagesMiddleware(app, policy) if policy.origins else app


def _routes(context: SurfaceContext) -> list[BaseRoute]:
    """Return the routes of the surfaces in order; the last one refuses all other requests."""
    refusing = context.surface(HostedApplications).hosted.root
    routes = [route for surface in context.surfaces for route in surface.routes()]
    return [*routes, Mount("/", refusing)]


def policy_of(context: SurfaceContext, token: str) -> guard.Policy:
    """Return who may call, how large a request may be, and how refusals look."""
    settings = context.settings
    key = settings.api_key
    return guard.Policy(
        hosts=guard.names((*settings.allow_hosts, settings.host)),
        any_address=settings.host not in LOOPBACK_NAMES,
        origins=frozenset(settings.allow_origins),
        body_limit=settings.body_limit,
        body_limits={
            session_token.UPLOAD: settings.upload_limit,
            "/mcp": min(mcp_hosting.BODY_LIMIT, settings.body_limit),
        },
        api_key=None if key is None else key.get_secret_value(),
        token=token,
        keys={
            f"{jupyter.PREFIX}/": (token, jupyter_key(token)),
            f"{model.PREFIX}/": (model_key(token),),
        },
        presented=_presented,
        signed=_authenticated_by_surfaces(context),
        render=_render,
    )


def certificate(settings: Settings) -> certificates.ServerTls | None:
    """Return the certificate for the double's host names if it serves https, or None."""
    if not settings.tls:
        return None
    names = guard.names((*settings.allow_hosts, settings.host))
    return certificates.prepare(settings.tls_directory, names | LOOPBACK_NAMES)


def _presented(connection: HTTPConnection) -> Iterable[str]:
    """Return what a request has in each place where its surface reads a key.

    MCP has a bearer token and nothing else (MCP-02), Jupyter and the model what their clients send.
    """
    path: str = connection.scope["path"]
    if mcp_hosting.is_mcp(connection):
        return (guard.bearer(connection),)
    if path.startswith(f"{jupyter.PREFIX}/"):
        return jupyter.presented(connection)
    if path.startswith(f"{model.PREFIX}/"):
        return model.presented(connection)
    return guard.bearer_or_header(connection)


def _authenticated_by_surfaces(context: SurfaceContext) -> guard.SignsItself:
    """Return a check for requests that need no API key, because a surface verifies them."""
    verified = [_is_data_plane, _is_service, context.surface(Runtimes).authenticates]
    if context.settings.check_signatures:
        verified.append(is_control_plane)
    return lambda connection: any(is_verified(connection) for is_verified in verified)


def _is_data_plane(connection: HTTPConnection) -> bool:
    """Return whether a request is for a session; A2A version 0.3 also has paths below ``/v1``."""
    return session_token.is_data_plane(connection) and not a2a_paths.is_a2a(connection)


def _is_service(connection: HTTPConnection) -> bool:
    path: str = connection.scope["path"]
    return path.startswith(mcp_hosting.PREFIX)


def _render(connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    if is_control_plane(connection):
        return render_refusal(connection, refusal)
    if _is_data_plane(connection):
        return session_token.render_refusal(refusal)
    if connection.scope["path"].startswith(f"{model.PREFIX}/"):
        return ModelEndpoint.render(connection, refusal)
    if mcp_hosting.is_mcp(connection):
        return mcp_hosting.render_refusal(refusal)
    # A POST to the root is JSON-RPC for the A2A application there.
    if a2a_paths.is_a2a(connection) or (
        connection.scope["path"] == "/" and connection.scope.get("method") == "POST"
    ):
        return a2a_paths.render_refusal(connection, refusal)
    return guard.render_json(connection, refusal)
