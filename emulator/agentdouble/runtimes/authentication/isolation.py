"""Session context by identity: the sessions of other identities are not found (AUT-03).

The owner of a session is remembered, not written into the session's id, so that an application
sees the ids that its clients sent. An identity's own sessions are forgotten first, so no caller can
make another one lose a session. A token stands for one user, which must also be the user in
API-server mode. A key stands for many users, which belong to the key.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from agentdouble.runtimes.authentication import naming, refusals
from agentdouble.runtimes.authentication.identity import Identity, Ownership, Thing
from agentdouble.runtimes.authentication.naming import AmbiguousError, Named

_LONGEST_RUN = 8 * 1024 * 1024  # bytes of a run's body, which is read first


class Isolation:
    """Limits one identity's requests to one runtime to the identity's own sessions."""

    def __init__(self, runtime: str, identity: Identity, owned: Ownership) -> None:
        self._runtime = runtime
        self._identity = identity
        self._owned = owned

    async def check(self, path: str, scope: Scope, receive: Receive) -> Receive:
        """Check a request; return the application's ``receive``, or raise AccessError."""
        self._require(naming.segments_of(path)[:2] != ["debug", "trace"])  # ADK shows all sessions
        try:
            self._hold(naming.in_head(path, scope))
            if not naming.is_run(path, scope.get("method", "")):
                return receive
            body = await self._body(receive)
            self._hold(naming.in_run(body))
        except AmbiguousError as error:
            raise refusals.ambiguous(self._runtime, str(error)) from None
        return _again(body, receive)

    def note(self, send: Send) -> Send:
        """Return the application's ``send``, which gives the caller an MCP session that begins."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                ids = (v for n, v in message["headers"] if n.lower() == b"mcp-session-id")
                self._take(Thing("mcp", one.decode("latin-1")) for one in ids)
            await send(message)

        return noting

    def _take(self, things: Iterable[Thing]) -> None:
        self._owned.take(self._identity, things)

    def _hold(self, named: Named) -> None:
        """Refuse names that belong to other identities, and give the identity the rest.

        A key stands for many users, and the headers of its requests may name any of them. The API
        server looks sessions up by user, so each user there belongs to one identity.
        """
        users = [Thing("user", name) for name in named.users]
        callers = [Thing("caller", name) for name in named.callers]
        sessions = [Thing("session", name) for name in named.sessions]
        if self._identity.user is not None:
            self._require(all(user.name == self._identity.user for user in users))
            users = callers = []
        of_users = [Thing("user", caller.name) for caller in callers]
        as_callers = [Thing("caller", user.name) for user in users]
        for thing in (*users, *as_callers, *of_users, *sessions):
            self._require(not self._owned.is_anothers(thing, self._identity))
        for name in named.mcp:
            self._require(self._owned.owner(Thing("mcp", name)) == self._identity)
        self._take((*users, *callers, *sessions))

    def _require(self, own: bool) -> None:
        if not own:
            raise refusals.no_session(self._runtime)

    async def _body(self, receive: Receive) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > _LONGEST_RUN:
                raise refusals.too_large(self._runtime, _LONGEST_RUN)
        return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that first gives a body that was already read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again
