"""Requests to an application of this process, for an HTTP client: no socket, streamed answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from starlette.types import ASGIApp, Message

_SESSION = "mcp-session-id"
_FINISHING_S = 10.0
_WAITING = 16  # pieces of an answer that may wait for their reader

_log = logging.getLogger(__name__)


class Inside(httpx2.AsyncBaseTransport):
    """Calls an ASGI application; ``refusal`` is the reason if it refused the last message.

    httpx2's own ASGITransport returns an answer only when it is complete. A server that sends a
    request inside its answer would then wait for ever.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.refusal: str | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return an answer before its body has come."""
        call = _Call(self._app, request, await request.aread())
        try:
            status, headers = await call.started
        except BaseException:
            await call.aclose()
            raise
        if request.method != "POST" or status < 400:
            self.refusal = None if request.method == "POST" else self.refusal
            return httpx2.Response(status, headers=headers, stream=call)
        body = b"".join([chunk async for chunk in call])
        await call.aclose()
        self.refusal = _refusal(status, body)
        return httpx2.Response(status, headers=headers, content=body)


class _Call(httpx2.AsyncByteStream):
    """One request, and the body of its answer as it comes."""

    def __init__(self, app: ASGIApp, request: httpx2.Request, body: bytes) -> None:
        self.started: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]]
        self.started = asyncio.get_running_loop().create_future()
        self._app = app
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._left = False
        self._opens = _SESSION not in request.headers and b'"initialize"' in body
        self._finishes = False
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)  # b"": the end
        self._task = asyncio.ensure_future(self._run(_scope(request)))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._chunks.get():
            yield chunk
        if chunk is None:
            raise httpx2.ReadError("The server broke off.")

    async def aclose(self) -> None:
        """Disconnect; return when the application has noticed.

        The application gets time to finish its answer, unless the answer is a stream of events. The
        SDK's client leaves as soon as it knows what it needs. The SDK's server handles a
        notification after it has answered it, and drops a session if its opening is interrupted.
        """
        self._left = True
        while not self._chunks.empty():
            self._chunks.get_nowait()
        try:
            if self._finishes:
                await asyncio.wait({self._task}, timeout=_FINISHING_S)
        finally:
            self._gone.set()
            self._task.cancel()
        await asyncio.wait({self._task})
        if self.started.done() and not self.started.cancelled():
            self.started.exception()  # retrieve it, or asyncio logs it

    async def _run(self, scope: dict[str, Any]) -> None:
        end: bytes | None = b""
        try:
            await self._app(scope, self._receive, self._send)
        except Exception as error:
            _log.warning("A server in this process failed: %r", error)
            end = None
        if not self.started.done():
            self.started.set_exception(httpx2.ReadError("The server answered nothing."))
        await self._chunks.put(end)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            streams = any(value.startswith(b"text/event-stream") for _, value in headers)
            self._finishes = self._opens or not streams
            self.started.set_result((message["status"], headers))
        elif message.get("body") and not self._left:
            await self._chunks.put(message["body"])


def _scope(request: httpx2.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path,
        "query_string": request.url.query,
        "server": (request.url.host, 80),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }


def _refusal(status: int, body: bytes) -> str | None:
    """Return why a request was refused, or None if the server itself answered it."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        message = json.loads(body)
        return None if message.get("id") is not None else str(message["error"]["message"])
    return f"it answered {status}"
