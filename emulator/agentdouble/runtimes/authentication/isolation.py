"""Session context by identity: what is another's is not found (AUT-03)."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from agentdouble.runtimes.authentication import naming, refusals
from agentdouble.runtimes.authentication.identity import Identity
from agentdouble.runtimes.authentication.naming import Named
from agentdouble.runtimes.authentication.ownership import Ownership, Thing

_LONGEST_RUN = 8 * 1024 * 1024  # bytes of the body of a run, which is read before it is passed on


class Isolation:
    """Holds one identity's requests to one runtime to what is its own."""

    def __init__(self, runtime: str, identity: Identity, owned: Ownership) -> None:
        self._runtime = runtime
        self._identity = identity
        self._owned = owned

    async def check(self, path: str, scope: Scope, receive: Receive) -> Receive:
        """Return how the application receives the request; raise AccessError."""
        try:
            self._hold(naming.in_head(path, scope))
            if not naming.is_run(path, scope.get("method", "")):
                return receive
            body = await self._body(receive)
            self._hold(naming.in_run(body))
        except naming.AmbiguousError as error:
            raise refusals.ambiguous(self._runtime, str(error)) from None
        return _again(body, receive)

    def note(self, send: Send) -> Send:
        """Return how the application answers: an MCP session that it makes is its caller's."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                made = (v for n, v in message["headers"] if n.lower() == b"mcp-session-id")
                self._owned.take(
                    self._identity, [Thing("mcp", one.decode("latin-1")) for one in made]
                )
            await send(message)

        return noting

    def _hold(self, named: Named) -> None:
        """Refuse what is another's, and make the rest the identity's own.

        A key speaks for many users, whom an application's headers may name as they like; those
        of the API server are looked up by user, and so are one identity's.
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
        self._owned.take(self._identity, (*users, *callers, *sessions))

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
    """Return a receive that gives a body that has been read already, then what comes after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again
