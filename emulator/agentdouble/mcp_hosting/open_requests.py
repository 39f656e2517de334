"""The open requests of an endpoint, which end when their caller or the server does."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Calls:
    """Answers requests with an application, until each is done or cancelled."""

    def __init__(self) -> None:
        self._open: dict[anyio.CancelScope, tuple[str, Scope]] = {}

    async def answer(
        self,
        app: ASGIApp,
        by: str,
        fallback: Callable[[], Response],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Let the application answer a request; ``by`` names its caller.

        A request that is cancelled before its response has begun gets ``fallback``; a response
        that has begun stops where it is.
        """
        response = _OpenResponse(send)
        # A scope, not a task: it separates this cancellation from that of a stopping server.
        with anyio.CancelScope() as cancelling:
            self._open[cancelling] = (by, scope)
            try:
                await app(scope, receive, response.send)
            finally:
                del self._open[cancelling]
        if cancelling.cancelled_caught:
            await response.finish(fallback, scope, receive)

    def cancel(self, by: str | None = None) -> None:
        """Cancel the requests of one caller, or all requests."""
        for cancelling, (caller, _) in list(self._open.items()):
            if by in (None, caller):
                cancelling.cancel()

    def cancel_listening(self) -> None:
        """Cancel the requests that only listen, because they would not end on their own."""
        for cancelling, (_, scope) in list(self._open.items()):
            if _listens(scope):
                cancelling.cancel()


def _listens(scope: Scope) -> bool:
    """Return whether a request waits for notifications, in either era of the protocol."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


class _OpenResponse:
    """A response that is being sent; it knows how much has been sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._has_length = False
        self._done = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            names = (name.lower() for name, _ in message.get("headers", ()))
            self._has_length = b"content-length" in names
        elif message["type"] == "http.response.body":
            self._done = not message.get("more_body", False)
        await self._send(message)

    async def finish(
        self, fallback: Callable[[], Response], scope: Scope, receive: Receive
    ) -> None:
        if not self._begun:
            await fallback()(scope, receive, self._send)
        elif not self._done and not self._has_length:  # with a length, the server cuts it off
            await self._send({"type": "http.response.body", "body": b""})
