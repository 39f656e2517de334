"""The middleware between the journal and the surfaces that applies faults to calls."""

from __future__ import annotations

from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.faults import operations
from agentdouble.faults.effects import answer
from agentdouble.faults.plan import Faults
from agentdouble.journal.entries import UNSEEN
from agentdouble.server.disconnects import replay
from agentdouble.server.guard import Render


class FaultMiddleware:
    """A middleware that injects the armed faults; ``render`` makes errors in a surface's format.

    Requests below ``except_prefix`` and those that are ``UNSEEN`` have no faults.
    """

    def __init__(self, app: ASGIApp, faults: Faults, render: Render, *, except_prefix: str) -> None:
        self._app = app
        self._faults = faults
        self._render = render
        self._except_prefix = except_prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._faults.active or self._is_exempt(scope):
            await self._app(scope, receive, send)
            return
        call, receive = await self._call(scope, receive)
        app = self._app
        # Nested, so that several faults can happen to one call.
        for armed in reversed(self._faults.matching(call)):  # the one armed first is outermost
            app = partial(answer, armed, app, self._render)
        await app(scope, receive, send)

    def _is_exempt(self, scope: Scope) -> bool:
        if scope["type"] != "http" or UNSEEN in scope:
            return True
        path: str = scope["path"]
        return path.startswith(self._except_prefix)

    async def _call(
        self, scope: Scope, receive: Receive
    ) -> tuple[operations.FaultableCall, Receive]:
        """Return the call of a request; read and replay the body if it names the operation."""
        method, path = scope["method"], scope["path"]
        body, query = None, scope["query_string"].decode("latin-1")
        if self._faults.reads_bodies and operations.has_rpc(method, path, query):
            messages = await _read(receive)
            body = b"".join(message.get("body", b"") for message in messages)
            receive = replay(messages, receive)
        return operations.call_of(method, path, query, body), receive


async def _read(receive: Receive) -> list[Message]:
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages
