"""Which key may use which MCP session: the one that has opened it."""

from __future__ import annotations

from collections import OrderedDict

from starlette.types import Message, Scope, Send

from agentdouble.mcp_hosting.keys import header

SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
FIRST_WITHOUT_SESSIONS = "2026-07-28"  # this and later versions of the protocol have none
LIMIT = 10_000  # sessions of a service, the SDK's number too; the oldest is forgotten first


class Sessions:
    """The sessions of one service, each with the key that the server has given it to."""

    def __init__(self) -> None:
        self._given: OrderedDict[tuple[str, str], None] = OrderedDict()

    def admit(self, scope: Scope, key: str) -> Scope | None:
        """Return the request as the server may see it, None if its session is another key's.

        A session that is not known is nobody's. In a version without sessions the header means
        nothing, and goes no further.
        """
        session = header(scope, SESSION_HEADER)
        if session is None or (session, key) in self._given:
            return scope
        if (header(scope, VERSION_HEADER) or "") < FIRST_WITHOUT_SESSIONS:
            return None
        kept = [(name, value) for name, value in scope["headers"] if name != SESSION_HEADER]
        return {**scope, "headers": kept}

    def watched(self, scope: Scope, key: str, send: Send) -> Send:
        """Return a ``send`` that notes which sessions an answer opens and ends."""
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
            self._given.pop((asked, key), None)
            return
        given = next((v for n, v in message.get("headers", ()) if n.lower() == SESSION_HEADER), b"")
        if given and succeeded:
            self._given[given.decode("latin-1"), key] = None
            self._given.move_to_end((given.decode("latin-1"), key))
            if len(self._given) > LIMIT:
                self._given.popitem(last=False)
