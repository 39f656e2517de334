"""Many MCP servers behind exact paths, each with its own keys, added and removed at run time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from agentdouble.failing import report
from agentdouble.mcp_hosting.calls import Calls
from agentdouble.mcp_hosting.keys import Sessions, find, presented
from agentdouble.mcp_hosting.refusals import INTERNAL_ERROR, OPERATIONS, failure, unauthorized
from agentdouble.openapi.operation import described

PREFIX = "/mcp/"


class Hosted(Protocol):
    """An application that can be hosted: an ASGI application that answers inside ``running()``."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def running(self) -> AbstractAsyncContextManager[None]: ...


@dataclass
class _Entry:
    app: Hosted
    keys: tuple[str, ...]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    sessions: Sessions = field(default_factory=Sessions)
    calls: Calls = field(default_factory=Calls)


@described(OPERATIONS)
class Host:
    """Answers ``/mcp/<name>`` with the server of that name, for requests with one of its keys.

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

    async def add(self, name: str, app: Hosted, keys: Sequence[str]) -> None:
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
        shown = presented(scope)
        key = find(shown, entry.keys)
        if key is None:
            await unauthorized(name, shown)(scope, receive, send)
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

    def __init__(self, name: str, app: Hosted) -> None:
        self._name = name
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watching(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watching)
        except (HTTPException, ClientDisconnect):  # the guard answers the first
            raise
        except Exception as error:
            if begun:  # the double's server ends the response and logs the error
                raise
            message = report(error, f"The MCP service {self._name}", shown=False)
            await failure(500, message, INTERNAL_ERROR)(scope, receive, send)
