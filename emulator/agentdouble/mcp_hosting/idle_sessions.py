"""A limit on the sessions of an MCP server: beyond it, a new one ends the longest idle one.

Clients often leave without ending their session, which takes 44 KiB until its idle timeout.
"""

from __future__ import annotations

from collections import OrderedDict

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
FIRST_WITHOUT_SESSIONS = "2026-07-28"  # this and later protocol versions have no sessions


def header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a request's header, or None."""
    return next((v.decode("latin-1") for n, v in scope["headers"] if n == name), None)


class IdleSessions:
    """A server with at most ``limit`` sessions, as long as some of them are idle.

    If all are being used, the server itself refuses another one.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._opening = 0
        # the number of requests by session; the one that was used last is last
        self._requests: OrderedDict[str, int] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = header(scope, SESSION_HEADER) or ""
        version = header(scope, VERSION_HEADER) or ""
        opens = not session and version < FIRST_WITHOUT_SESSIONS

        async def noting(message: Message) -> None:
            nonlocal session
            if opens and message["type"] == "http.response.start" and message["status"] < 400:
                session = header(message, SESSION_HEADER) or ""
                if session:
                    self._requests[session] = 1
            await send(message)

        if session in self._requests:
            self._requests[session] += 1
        self._opening += opens
        try:
            if opens:
                await self._make_room(scope)
            await self._app(scope, receive, noting)
        finally:
            self._opening -= opens
            if scope["method"] == "DELETE":
                self._requests.pop(session, None)
            elif session in self._requests:
                self._requests[session] -= 1
                self._requests.move_to_end(session)

    async def _make_room(self, scope: Scope) -> None:
        """End idle sessions, as their clients would, until there is room for those that open."""
        while len(self._requests) + self._opening > self._limit:
            idle = next((id_ for id_, count in self._requests.items() if not count), None)
            if idle is None:
                return
            del self._requests[idle]
            headers = [(SESSION_HEADER, idle.encode("latin-1"))]
            await self._app({**scope, "method": "DELETE", "headers": headers}, _receive, _send)


async def _receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send(_message: Message) -> None:
    pass
