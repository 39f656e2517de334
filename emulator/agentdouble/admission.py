"""Who may call what asks for no credentials, and who the double's own routes.

Decided here for every surface. Code that the double runs for others is on the inside of its own
address: it calls from this machine, and a page that a runtime serves calls from the double's own
origin. So what lets anybody in, lets in neither the code of sessions nor web pages that nobody
has allowed. The double's own routes refuse runtimes too, and what the double itself asks on
somebody's behalf. A page is told by what browsers send with its requests and no script can leave
out: ``Origin``, ``Sec-Fetch-Site``. What the double asks is told by a mark, which no address can
hide: every client that it asks with on somebody's behalf is made by ``on_behalf``. Runtimes are let
in where anybody is, because agents call each other.
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

OWN = "/_emulator"  # where the double's own routes are
Address = tuple[str, int]
Caller = Literal["session", "runtime", "program"]
Asks = Callable[[HTTPConnection], bool]

_PAGES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_CALLER = "caller"  # what a connection keeps
_TYPED = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
# An answer to a person who has typed an address is no page of this origin's that others could read.
_SHOWN = {"Cache-Control": "no-store", "Content-Security-Policy": "sandbox"}


@dataclass(frozen=True)
class Admission:
    """The rules.

    ``caller`` tells who is at the other end of a connection by its address and ours: a program is
    somebody's of this machine or another. ``origins`` are the web pages that may call; "*" is all. Where
    everything is ``keyed``, the key decides. ``asks`` tells requests that prove themselves by
    credentials, ``pages`` those for places whose pages are of this origin: they reach these.
    ``sessions`` are let in where ``let_sessions`` is true.
    """

    caller: Callable[[Address, Address], Awaitable[Caller]]
    asks: Asks
    pages: Asks
    origins: frozenset[str] = frozenset()
    keyed: bool = False
    let_sessions: bool = False
    render: guard.Render = guard.render_json

    async def refusal(self, connection: HTTPConnection) -> Refusal | None:
        """Return why a request may not enter where no credentials are asked for, if so."""
        if self.keyed:
            return None
        if self.is_of_a_page(connection) and not (self.pages(connection) or self.asks(connection)):
            return _page(connection)
        if self.let_sessions or _known(connection) == "program" or self.asks(connection):
            return None
        return _session(connection) if await self._caller(connection) == "session" else None

    async def own_refusal(self, connection: HTTPConnection) -> Refusal | None:
        """Return why a request may not enter the double's own routes, if so."""
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

    async def refuses(self, client: Address, server: Address) -> bool:
        """Return whether a caller may not enter where no credentials are asked for."""
        return not self.let_sessions and await self.caller(client, server) == "session"

    def is_of_a_page(self, connection: HTTPConnection) -> bool:
        """Whether a browser sends a request for a web page that is not among the origins."""
        headers = connection.headers
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if (origin is None and site is None) or "*" in self.origins or is_typed(connection):
            return False
        own = f"{_PAGES[connection.url.scheme]}://{headers.get('host', '')}"
        if origin == own and _is_a_program_s_websocket(connection):
            return False
        if origin is None and site == "same-origin":
            origin = own
        return origin not in self.origins

    async def _caller(self, connection: HTTPConnection) -> Caller:
        """Return who calls; it is found out once for a connection."""
        peer = connection.scope.get(serving.PEER)
        if peer is None:  # no socket: it is called in this process
            return "program"
        kept = connection.scope[serving.KEPT]
        if _CALLER not in kept:
            kept[_CALLER] = await self.caller(peer, connection.scope["server"])
        return _known(connection) or "session"


class Admitting:
    """An ASGI application in front of all surfaces that lets pass what the rules admit."""

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
    """Whether a person asks, who has typed an address into a browser or opened a bookmark."""
    headers, method = connection.headers, connection.scope.get("method")
    return method == "GET" and all(headers.get(name) == value for name, value in _TYPED.items())


def _is_a_program_s_websocket(connection: HTTPConnection) -> bool:
    """Whether a handshake comes from a library: some name an origin of their own accord.

    Every browser calls itself Mozilla, and a script cannot change that of a WebSocket.
    """
    agent = connection.headers.get("user-agent", "")
    return connection.scope["type"] == "websocket" and not agent.startswith("Mozilla/")


def _known(connection: HTTPConnection) -> Caller | None:
    """Return who calls, where that was found out for the connection before."""
    kept: Mapping[str, Caller] = connection.scope.get(serving.KEPT, {})
    return kept.get(_CALLER)


def _is_from_here(connection: HTTPConnection) -> bool:
    """Whether a caller is on this machine, and a browser would say for which page it asks.

    Over plain http it says so to loopback's names alone.
    """
    client, host = connection.client, guard.host_name(connection.headers.get("host", ""))
    tells = is_loopback(host) or connection.url.scheme in ("https", "wss")
    return client is not None and client.host in guard.LOOPBACK_NAMES and tells


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
