"""API keys of a service in requests, and the MCP sessions that each key has opened."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Sequence

from starlette.types import Message, Scope, Send

SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
FIRST_WITHOUT_SESSIONS = "2026-07-28"  # this and later protocol versions have no sessions
LIMIT = 10_000  # sessions of a service, as in the SDK; the oldest is forgotten first


def presented(scope: Scope) -> str | None:
    """Return the key of a request's ``Authorization: Bearer``, or None (section 4.3)."""
    value = header(scope, b"authorization")
    scheme, _, key = ("" if value is None else value).partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def find(key: str | None, keys: Sequence[str]) -> str | None:
    """Return the matching key, or None, in a time that does not depend on the key."""
    found = None
    for one in keys:
        if hmac.compare_digest(one.encode(), (key or "").encode("utf-8", "surrogatepass")):
            found = one
    return found


def header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a request's header, or None."""
    return next((v.decode("latin-1") for n, v in scope["headers"] if n == name), None)


class Sessions:
    """The sessions of one service, each with the key that opened it.

    They are checked in front of the server, so the check works for every server.
    """

    def __init__(self) -> None:
        self._opened: OrderedDict[tuple[str, str], None] = OrderedDict()

    def admit(self, scope: Scope, key: str) -> Scope | None:
        """Return the request for the server, or None if its session belongs to another key.

        An unknown session counts as another key's. In a protocol version without sessions, the
        header has no meaning and is removed.
        """
        session = header(scope, SESSION_HEADER)
        if session is None or (session, key) in self._opened:
            return scope
        if (header(scope, VERSION_HEADER) or "") < FIRST_WITHOUT_SESSIONS:
            return None
        headers = [(name, value) for name, value in scope["headers"] if name != SESSION_HEADER]
        return {**scope, "headers": headers}

    def watched(self, scope: Scope, key: str, send: Send) -> Send:
        """Return a ``send`` that notes the sessions that a response opens or ends."""
        asked = header(scope, SESSION_HEADER)
        ends = scope["method"] == "DELETE"

        async def watching(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(message, asked, key, ends)
            await send(message)

        return watching

    def _note(self, message: Message, asked: str | None, key: str, ends: bool) -> None:
        succeeded = message["status"] < 400
        if asked is not None and (message["status"] == 404 or (ends and succeeded)):
            self._opened.pop((asked, key), None)
            return
        given = next((v for n, v in message.get("headers", ()) if n.lower() == SESSION_HEADER), b"")
        if given and succeeded:
            self._opened[given.decode("latin-1"), key] = None
            self._opened.move_to_end((given.decode("latin-1"), key))
            if len(self._opened) > LIMIT:
                self._opened.popitem(last=False)
