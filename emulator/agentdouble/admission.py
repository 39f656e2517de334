"""The rules that say who may call routes without credentials, and the double's own routes.

They hold for every surface. Code of sessions and runtimes calls from this machine, and a page that
a runtime serves has the double's own origin. So a double that needs no key still refuses the code
of sessions, and web pages that are not allowed. The double's own routes also refuse runtimes, and
requests that the double makes on behalf of a client. A page is recognized by the headers
``Origin`` and ``Sec-Fetch-Site``: browsers send them, and no script can leave them out. A request
of the double has a mark, which no address can hide: ``on_behalf`` makes every client that sends
such requests. On other routes runtimes may call, because agents call each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import guard, on_behalf, serving
from agentdouble.addresses import is_loopback
from agentdouble.guard import Refusal

OWN = "/_emulator"  # the prefix of the double's own routes
Address = tuple[str, int]
Caller = Literal["session", "runtime", "program"]
Asks = Callable[[HTTPConnection], bool]

_PAGES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_CALLER = "caller"  # the key of the caller in the dict of a connection
_TYPED = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
# A person who typed an address gets an answer that no other page can read as one of this origin.
_SHOWN = {"Cache-Control": "no-store", "Content-Security-Policy": "sandbox"}


@dataclass(frozen=True)
class Admission:
    """The rules.

    ``caller`` returns the kind of the caller, from its address and ours: the code of a session, a
    runtime, or another program, of this machine or of another. ``origins`` are the web pages that
    may call; "*" means all. If the double is ``keyed``, the key alone decides. ``asks`` returns
    whether a request must prove itself by credentials. ``pages`` returns whether a request is for
    a place whose pages have this origin: these pages may call it. Sessions may call if
    ``let_sessions`` is true.
    """

    caller: Callable[[Address, Address], Awaitable[Caller]]
    asks: Asks
    pages: Asks
    origins: frozenset[str] = frozenset()
    keyed: bool = False
    let_sessions: bool = False
    render: guard.Render = guard.render_json

    async def refusal(self, connection: HTTPConnection) -> Refusal | None:
        """Return why a request may not enter a route without credentials, or None if it may."""
        if self.keyed:
            return None
        if self.is_of_a_page(connection) and not (self.pages(connection) or self.asks(connection)):
            return _page(connection)
        if self.let_sessions or _known(connection) == "program" or self.asks(connection):
            return None
        return _session(connection) if await self._caller(connection) == "session" else None

    async def own_refusal(self, connection: HTTPConnection) -> Refusal | None:
        """Return why a request may not enter the double's own routes, or None if it may."""
        if on_behalf.is_marked(connection.scope["headers"]):
            return _client(connection, "what a double asks on somebody's behalf")
        if self.is_of_a_page(connection):
            return _page(connection)
        if self.keyed:
            return None
        if not _is_from_here(connection):
            return _client(
                connection, "callers of other machines, or by other names than loopback's"
            )
        caller = await self._caller(connection)
        if caller != "program":
            return _client(connection, f"the code of a {caller}, nor a caller that has gone")
        return None

    def is_of_a_page(self, connection: HTTPConnection) -> bool:
        """Return whether a browser sends the request for a web page that may not call."""
        headers = connection.headers
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if (origin is None and site is None) or "*" in self.origins or is_typed(connection):
            return False
        if _is_a_program_with_own_origin(connection):
            return False
        if origin is None and site == "same-origin":
            origin = f"{_PAGES[connection.url.scheme]}://{headers.get('host', '')}"
        return origin not in self.origins

    async def _caller(self, connection: HTTPConnection) -> Caller:
        """Return the kind of the caller; look it up once for each connection."""
        peer = connection.scope.get(serving.PEER)
        if peer is None:  # no socket: the application is called in this process
            return "program"
        kept = connection.scope[serving.KEPT]
        if _CALLER not in kept:
            kept[_CALLER] = await self.caller(peer, connection.scope["server"])
        return _known(connection) or "session"


class Admitting:
    """An ASGI application in front of all surfaces that passes on only admitted requests."""

    def __init__(self, app: ASGIApp, rules: Admission) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        refusal = await self._refusal(connection)
        if refusal is not None:
            await self._rules.render(connection, refusal)(scope, receive, send)
            return
        shown = is_typed(connection) and not self._rules.pages(connection)
        await self._app(scope, receive, _with(_SHOWN, send) if shown else send)

    async def _refusal(self, connection: HTTPConnection) -> Refusal | None:
        path: str = connection.scope["path"]
        if path.startswith(f"{OWN}/"):
            return await self._rules.own_refusal(connection)
        return await self._rules.refusal(connection)


def is_typed(connection: HTTPConnection) -> bool:
    """Return whether a person typed the address into a browser or opened a bookmark."""
    headers, method = connection.headers, connection.scope.get("method")
    return method == "GET" and all(headers.get(name) == value for name, value in _TYPED.items())


def _is_a_program_with_own_origin(connection: HTTPConnection) -> bool:
    """Return whether a library, not a browser, sends the double's own address as the Origin.

    Clients of WebSockets and MCP do that. Every browser's User-Agent starts with Mozilla. A script
    can change that, but not for a WebSocket, and it cannot leave out the Sec-Fetch-Site.
    """
    headers = connection.headers
    origin, host = headers.get("origin", ""), headers.get("host", "")
    if not origin.startswith(f"{_PAGES[connection.url.scheme]}://"):
        return False
    if not guard.is_same_origin(origin, host) or headers.get("user-agent", "").startswith(
        "Mozilla/"
    ):
        return False
    is_websocket = connection.scope["type"] == "websocket"
    return is_websocket or ("sec-fetch-site" not in headers and _browsers_name_pages(connection))


def _known(connection: HTTPConnection) -> Caller | None:
    """Return the kind of the caller, if it was already looked up for the connection."""
    kept: Mapping[str, Caller] = connection.scope.get(serving.KEPT, {})
    return kept.get(_CALLER)


def _is_from_here(connection: HTTPConnection) -> bool:
    """Return whether a caller is on this machine and a browser would say which page calls."""
    client = connection.client
    is_here = client is not None and client.host in guard.LOOPBACK_NAMES
    return is_here and _browsers_name_pages(connection)


def _browsers_name_pages(connection: HTTPConnection) -> bool:
    """Return whether browsers add Sec-Fetch-Site: over plain http only for loopback names."""
    host = guard.host_name(connection.headers.get("host", ""))
    return is_loopback(host) or connection.url.scheme in ("https", "wss")


def _with(headers: Mapping[str, str], send: Send) -> Send:
    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return add


def _client(connection: HTTPConnection, who: str) -> Refusal:
    return Refusal(
        403,
        "ForbiddenClient",
        f"{connection.scope['path']} does not answer {who}. "
        "Start the double with an API key to let holders of the key in.",
    )


def _page(connection: HTTPConnection) -> Refusal:
    named = connection.headers.get("origin", "")
    page = f"the web page {named!r}" if named else "a web page, nor a link on one"
    return Refusal(
        403,
        "ForbiddenOrigin",
        f"{connection.scope['path']} does not answer {page}. "
        "Name the page's origin in the setting allow_origins to let it call.",
    )


def _session(connection: HTTPConnection) -> Refusal:
    return Refusal(
        403,
        "ForbiddenClient",
        f"{connection.scope['path']} asks for no credentials, and does not answer the code of a "
        "session, nor a caller that has gone. Set api_key, or allow_sessions to let it call.",
    )
