"""Many MCP servers behind exact paths, each with its own keys, added and removed at run time."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from agentdouble.journal.failures import report
from agentdouble.mcp_hosting.endpoint import OPERATIONS
from agentdouble.mcp_hosting.idle_sessions import (
    FIRST_WITHOUT_SESSIONS,
    SESSION_HEADER,
    VERSION_HEADER,
    header,
)
from agentdouble.mcp_hosting.open_requests import Calls
from agentdouble.mcp_hosting.refusals import INTERNAL_ERROR, failure, unauthorized
from agentdouble.openapi.operation import described

LIMIT = 10_000  # sessions of a service, as in the SDK; the oldest is forgotten first


def presented(scope: Scope) -> str | None:
    """Return the key of a request's ``Authorization: Bearer``, or None (section 4.3)."""
    value = header(scope, b"authorization")
    scheme, _, key = ("" if value is None else value).partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def find(key: str | None, keys: Sequence[str]) -> str | None:
    """Return the matching key, or None; the time that takes does not depend on the key."""
    match = None
    for valid in keys:
        if hmac.compare_digest(valid.encode(), (key or "").encode("utf-8", "surrogatepass")):
            match = valid
    return match


class HostedSessions:
    """The sessions of one service, each with the key that opened it.

    Keys are checked in front of the server, so the check works for every server.
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
        session_id = header(scope, SESSION_HEADER)
        ends = scope["method"] == "DELETE"

        async def watching(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(message, session_id, key, ends)
            await send(message)

        return watching

    def _note(self, message: Message, session_id: str | None, key: str, ends: bool) -> None:
        succeeded = message["status"] < 400
        if session_id is not None and (message["status"] == 404 or (ends and succeeded)):
            self._opened.pop((session_id, key), None)
            return
        new_session = next(
            (v for n, v in message.get("headers", ()) if n.lower() == SESSION_HEADER), b""
        )
        if new_session and succeeded:
            self._opened[new_session.decode("latin-1"), key] = None
            self._opened.move_to_end((new_session.decode("latin-1"), key))
            if len(self._opened) > LIMIT:
                self._opened.popitem(last=False)


PREFIX = "/mcp/"


class HostedServer(Protocol):
    """An application that can be hosted: an ASGI application that answers inside ``running()``."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def running(self) -> AbstractAsyncContextManager[None]: ...


@dataclass
class _Entry:
    app: HostedServer
    keys: tuple[str, ...]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    sessions: HostedSessions = field(default_factory=HostedSessions)
    calls: Calls = field(default_factory=Calls)


@described(OPERATIONS)
class Host:
    """Answers ``/mcp/<name>`` with the server of that name, for requests with one of its keys.

    A key is the text after ``Bearer`` in the Authorization header, without spaces.
    All methods are called on one event loop, inside ``running()``. A session belongs to the key
    that opened it: with another key, the session is not found (404).
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept servers inside the block; remove all of them at the end."""
        try:
            yield
        finally:
            for name in list(self._entries):
                await self.remove(name)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    async def add(self, name: str, app: HostedServer, keys: Sequence[str]) -> None:
        """Serve an application under a name; raise ValueError if another server has the name."""
        if name in self._entries:
            raise ValueError(f"Another server is hosted as {name!r}.")
        entry = self._entries[name] = _Entry(app, tuple(keys))
        try:
            await entry.stack.enter_async_context(app.running())
        except BaseException:
            self._entries.pop(name, None)
            raise

    async def remove(self, name: str) -> None:
        """Stop serving a name, and cancel its requests; raise KeyError."""
        entry = self._entries.pop(name)
        entry.calls.cancel()
        await entry.stack.aclose()

    def rekey(self, name: str, keys: Sequence[str]) -> None:
        """Accept these keys from now on; cancel requests with removed keys. Raise KeyError."""
        entry = self._entries[name]
        revoked = set(entry.keys) - set(keys)
        entry.keys = tuple(keys)
        for key in revoked:
            entry.calls.cancel(key)

    def begin_shutdown(self) -> None:
        """End the streams that only listen, because they would not end on their own."""
        for entry in self._entries.values():
            entry.calls.cancel_listening()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix(PREFIX)
        entry = self._entries.get(name)
        if entry is None:
            await _unknown(name)(scope, receive, send)
            return
        key_sent = presented(scope)
        key = find(key_sent, entry.keys)
        if key is None:
            await unauthorized(name, key_sent)(scope, receive, send)
            return
        await self._answer(name, entry, key, scope, receive, send)

    async def _answer(
        self, name: str, entry: _Entry, key: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        admitted = entry.sessions.admit(scope, key)
        if admitted is None:
            await failure(404, "Session not found")(scope, receive, send)
            return

        def ended() -> Response:
            if self._entries.get(name) is not entry:
                return _unknown(name)
            return unauthorized(name, key)

        watched = entry.sessions.watched(scope, key, send)
        app = _Contained(name, entry.app)
        await entry.calls.answer(app, key, ended, admitted, receive, watched)


def _unknown(name: str) -> Response:
    return failure(404, f"There is no MCP service {name!r}.")


class _Contained:
    """A server whose errors affect only the current request."""

    def __init__(self, name: str, app: HostedServer) -> None:
        self._name = name
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def watching(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watching)
        except (HTTPException, ClientDisconnect):  # the guard answers an HTTPException
            raise
        except Exception as error:
            if has_begun:  # the double's server ends the response and logs the error
                raise
            message = report(error, f"The MCP service {self._name}", shown=False)
            await failure(500, message, INTERNAL_ERROR)(scope, receive, send)
