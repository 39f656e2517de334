"""The requests that are being answered, so that they can be ended from outside."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Calls:
    """Answers requests with an application, each until it is done or ``end`` is called."""

    def __init__(self) -> None:
        self._open: dict[anyio.CancelScope, tuple[str, Scope]] = {}

    async def answer(
        self,
        app: ASGIApp,
        by: str,
        otherwise: Callable[[], Response],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Let the application answer a request ``by`` somebody.

        One that is ended before its answer has begun is answered with ``otherwise``; an answer
        that has begun stops where it is.
        """
        answer = _Answer(send)
        with anyio.CancelScope() as cancelling:
            self._open[cancelling] = (by, scope)
            try:
                await app(scope, receive, answer.send)
            finally:
                del self._open[cancelling]
        if cancelling.cancelled_caught:
            await answer.finish(otherwise, scope, receive)

    def end(self, by: str | None = None) -> None:
        """End the requests that somebody made, or all."""
        for cancelling, (whose, _) in list(self._open.items()):
            if by in (None, whose):
                cancelling.cancel()

    def let_go(self) -> None:
        """End the requests that only listen, which would never end by themselves."""
        for cancelling, (_, scope) in list(self._open.items()):
            if _listens(scope):
                cancelling.cancel()


def _listens(scope: Scope) -> bool:
    """Return whether a request waits for notifications, in either era of the protocol."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


class _Answer:
    """An answer on its way; it knows how far it has come."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._measured = False
        self._done = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            names = (name.lower() for name, _ in message.get("headers", ()))
            self._measured = b"content-length" in names
        elif message["type"] == "http.response.body":
            self._done = not message.get("more_body", False)
        await self._send(message)

    async def finish(
        self, otherwise: Callable[[], Response], scope: Scope, receive: Receive
    ) -> None:
        if not self._begun:
            await otherwise()(scope, receive, self._send)
        elif not self._done and not self._measured:  # what has announced its length is cut off
            await self._send({"type": "http.response.body", "body": b""})
