"""Pass a request on to an instance, and its answer back, both as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpcore
from starlette.types import Receive, Scope, Send

from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.ports import HOST

_HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade"),
    )
)


class Proxy:
    """Keeps connections to instances; belongs to one event loop."""

    def __init__(self) -> None:
        self._pool = httpcore.AsyncConnectionPool(max_connections=None)

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    async def pass_on(
        self, instance: Instance, path: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass an HTTP request on, for ``path`` and the query of the scope."""
        target = path.encode() + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        request = httpcore.Request(
            scope["method"],
            httpcore.URL(scheme=b"http", host=HOST.encode(), port=instance.port, target=target),
            headers=_passed(scope["headers"]),
            content=_body(receive),
        )
        response = await self._pool.handle_async_request(request)
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status,
                    "headers": _passed(response.headers),
                }
            )
            async for piece in response.aiter_stream():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})
        finally:
            await response.aclose()


def _passed(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        yield message.get("body", b"")
