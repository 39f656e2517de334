"""A proxy that adds a key to every request, for clients that cannot send one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.server.disconnects import cancel_on_disconnect

_OF_A_CONNECTION = {b"connection", b"keep-alive", b"transfer-encoding"}


class Keyed:
    """Forwards every request unchanged, Host included, and adds a key."""

    def __init__(self, server: str, key: str) -> None:
        self._server = server
        self._key = key
        self._client = httpx.AsyncClient(timeout=None, trust_env=False, verify=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._client:
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        onward = httpx.Request(
            request.method,
            self._server + request.url.path,
            headers=[
                *_forwarded(request.headers.raw),
                (b"authorization", f"Bearer {self._key}".encode()),
            ],
            content=await request.body(),
        )
        with suppress(ClientDisconnect):
            await cancel_on_disconnect(receive, self._exchange(onward, send))

    async def _exchange(self, onward: httpx.Request, send: Send) -> None:
        answer = await self._client.send(onward, stream=True)
        try:
            headers = _forwarded(answer.headers.raw)
            status = answer.status_code
            await send({"type": "http.response.start", "status": status, "headers": headers})
            async for part in answer.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await answer.aclose()


def keyed(server: str, key: str) -> ASGIApp:
    """Return the application of such a proxy."""
    proxy = Keyed(server, key)
    app = Starlette(lifespan=lambda _app: proxy.running())
    app.mount("/", proxy)
    return app


def _forwarded(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower(), value) for name, value in headers if name.lower() not in _OF_A_CONNECTION
    ]
