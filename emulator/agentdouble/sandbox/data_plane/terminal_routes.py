"""``GET /v1/shell/terminal-url``: an address that names a new terminal of the session."""

from __future__ import annotations

import uuid
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble.openapi import operation
from agentdouble.sandbox.data_plane.session_token import INSTANCE, PREFIX, TOKEN, processes_of
from agentdouble.sandbox.workbench.wire import Envelope, envelope

PAGE = f"{PREFIX}/shell/terminal"


def route() -> Route:
    """Return the route."""
    return Route(f"{PREFIX}/shell/terminal-url", terminal_url)


@operation(Envelope)
async def terminal_url(request: Request) -> Response:
    """Return the address of a new terminal; its ``session_id`` is for ``WS /v1/shell/ws``.

    The terminal starts with its first connection. The page at the address itself is not
    implemented.
    """
    session = processes_of(request).session
    query = {INSTANCE: session.id, TOKEN: session.token, "session_id": uuid.uuid4().hex}
    return envelope(f"{request.url.scheme}://{request.url.netloc}{PAGE}?{urlencode(query)}")
