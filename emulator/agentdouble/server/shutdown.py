"""The end of a request that is still being answered when its server stops.

The request is refused in the format of its surface, and the journal records that. If the answer
has started, the connection is closed before the answer ends, so that no client takes a part of an
answer for the whole.
"""

from __future__ import annotations

import asyncio

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.server.guard import Refusal, Render, render_json
from agentdouble.server.protocols import TRANSPORT, hang_up

STOPPING = Refusal(
    503,
    "ServerStopping",
    "The server is stopping, and ended this request before it had an answer. "
    "Send it again when the server is back.",
)


class ShutdownMiddleware:
    """An ASGI application in front of another that tells callers when the server stops.

    A caller without an answer gets a refusal. If the answer has started, the connection is closed
    before it ends. A request that other code in this process cancels stays cancelled.
    """

    def __init__(self, app: ASGIApp, render: Render = render_json) -> None:
        self._app = app
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("type") != "http" or TRANSPORT not in scope:
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:  # only a server that stops cancels its requests
            if begun:
                await hang_up(scope, receive)
                return
            await self._render(HTTPConnection(scope), STOPPING)(scope, receive, send)
