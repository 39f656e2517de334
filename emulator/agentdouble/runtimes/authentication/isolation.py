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

from agentdouble.runtimes.authentication import a2a, naming, refusals
from agentdouble.runtimes.authentication.identity import Identity, Ownership, Thing
from agentdouble.runtimes.authentication.naming import AmbiguousError, Named

_LONGEST_RUN = 8 * 1024 * 1024  # bytes of a run's body, which is read first


class Isolation:
    """Limits one identity's requests to one runtime to the identity's own sessions."""

    def __init__(self, runtime: str, identity: Identity, owned: Ownership) -> None:
        self._runtime = runtime
        self._identity = identity
        self._owned = owned
        self.listens = False  # whether the answer names created tasks

    async def check(self, path: str, scope: Scope, receive: Receive) -> Receive:
        """Check a request; return the application's ``receive``, or raise AccessError."""
        segments, method = naming.segments_of(path), scope.get("method", "")
        self.listens = a2a.is_message(segments, method)
        self._require(segments[:2] != ["debug", "trace"])  # ADK shows all sessions there
        try:
            self._hold(naming.in_head(path, scope))
            self._converse(a2a.in_head(segments, method, scope["query_string"]))
            if not self.listens and not naming.is_run(path, method):
                return receive
            body = await self._body(receive)
            if self.listens:
                self._converse(a2a.in_body(body))
            else:
                self._hold(naming.in_run(body))
        except AmbiguousError as error:
            raise refusals.ambiguous(self._runtime, str(error)) from None
        return _again(body, receive)

    def note(self, send: Send) -> Send:
        """Return the application's ``send``, which gives the caller what the answer creates."""
        made = a2a.Made() if self.listens else None

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                ids = (v for n, v in message["headers"] if n.lower() == b"mcp-session-id")
                self._take(Thing("mcp", one.decode("latin-1")) for one in ids)
            elif message["type"] == "http.response.body" and made is not None:
                last = not message.get("more_body", False)
                found = made.feed(message.get("body", b""), last=last)
                self._take(Thing("task", one) for one in found.tasks)
                self._take(Thing("context", one) for one in found.contexts)
            await send(message)

        return noting

    def _take(self, things: Iterable[Thing]) -> None:
        self._owned.take(self._identity, things)

    def _converse(self, asked: a2a.Asked) -> None:
        """Refuse tasks and contexts of other identities, and lists of all tasks."""
        named = [Thing("task", name) for name in asked.tasks]
        contexts = [Thing("context", name) for name in asked.contexts]
        if any(self._owned.is_anothers(one, self._identity) for one in (*named, *contexts)):
            raise refusals.no_task(self._runtime, asked.call)
        if asked.lists and (asked.call is not None or "task" in self._owned.kinds):
            raise refusals.no_list(self._runtime, asked.call)
        self._take(contexts)

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
