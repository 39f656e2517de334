"""What a console checks in each request.

``Origin`` and ``Sec-Fetch-Site`` reveal pages of other origins, and ``Host`` a foreign name that
was bound to this machine. The token keeps out local programs other than the user's browser.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.core.environment import LOOPBACK_NAMES
from agentdouble.server import guard
from agentdouble.server.guard import Refusal

API = "/api/"
READING = frozenset({"GET", "HEAD"})
_WRITTEN = frozenset({"application/json", "application/octet-stream"})  # no form can send them
_SITES = frozenset({None, "none", "same-origin"})
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Checks:
    """An ASGI application in front of the console that passes on only the user's own requests."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        refusal = self._refusal(connection)
        if refusal is None:
            await self._app(scope, receive, _secured(send))
        else:
            await guard.render_json(connection, refusal)(scope, receive, _secured(send))

    def _refusal(self, connection: HTTPConnection) -> Refusal | None:
        if connection.scope["type"] != "http":
            return Refusal(404, "NotFound", "The console has no WebSockets.")
        return _foreign(connection) or self._unauthorized(connection) or _unwritable(connection)

    def _unauthorized(self, connection: HTTPConnection) -> Refusal | None:
        """Refuse a request for data without the token; the shell and its modules hold none."""
        if not connection.scope["path"].startswith(API):
            return None
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        return Refusal(
            401,
            "Unauthorized",
            "This is not the token of this console. Open the address that agentdouble serve "
            "printed at its start, or Emulator.console_url.",
        )


def _foreign(connection: HTTPConnection) -> Refusal | None:
    """Refuse names other than loopback's, and pages of other origins."""
    headers = connection.headers
    hosts = headers.getlist("host")
    if len(hosts) != 1 or guard.host_name(hosts[0]) not in LOOPBACK_NAMES:
        named = ", ".join(hosts)[:200]
        return Refusal(
            403, "ForbiddenHost", f"The console answers localhost and 127.0.0.1, not {named!r}."
        )
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    own_origin = f"{connection.scope['scheme']}://{hosts[0]}"
    if origin not in (None, own_origin) or site not in _SITES:
        page = f"the web page {origin!r}" if origin else f"a {site} request of a web page"
        return Refusal(
            403,
            "ForbiddenOrigin",
            f"The console does not answer {page}. Enter its address in the browser by hand.",
        )
    return None


def _unwritable(connection: HTTPConnection) -> Refusal | None:
    """Refuse a write that a form on a foreign page could send, too."""
    content_type = connection.headers.get("content-type", "").partition(";")[0].strip()
    if connection.scope["method"] in READING or content_type in _WRITTEN:
        return None
    return Refusal(
        415,
        "UnsupportedMediaType",
        "To change something, send Content-Type: application/json, or a file as "
        "application/octet-stream.",
    )


def _secured(send: Send) -> Send:
    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            message.setdefault("headers", [])
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return add
