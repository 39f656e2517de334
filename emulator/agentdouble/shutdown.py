"""The end of a request that is still being answered when its server stops.

It is refused in the shape of its surface, and the journal has that. Where an answer has begun, the
connection is closed before its end, so that no client takes half an answer for a whole one.
"""

from __future__ import annotations

import asyncio

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import serving
from agentdouble.guard import Refusal, Render, render_json

STOPPING = Refusal(
    503,
    "ServerStopping",
    "The server is stopping, and ended this request before it had an answer. "
    "Send it again when the server is back.",
)


class ShutdownMiddleware:
    """An ASGI application in front of another, which tells callers that the server stops.

    One who has no answer yet is given a refusal; where one has begun, the connection is closed
    before its end. A request that somebody else cancels, in this process, stays cancelled.
    """

    def __init__(self, app: ASGIApp, render: Render = render_json) -> None:
        self._app = app
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("type") != "http" or serving.TRANSPORT not in scope:
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:  # none but a server that stops cancels what it serves
            if begun:
                await serving.hang_up(scope, receive)
                return
            await self._render(HTTPConnection(scope), STOPPING)(scope, receive, send)
