"""Forwarding of requests to a session's workbench, and of its answers, as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from agentdouble.disconnects import cancel_on_disconnect
from agentdouble.openapi import hidden
from agentdouble.sandbox.data_plane.session_token import instance_of
from agentdouble.sandbox.instance import Instance

if TYPE_CHECKING:
    import httpx

    from agentdouble.sandbox.workbench.client import Workbench

_STAYS_HERE = frozenset(  # headers for this server, not for the workbench
    (
        *("authorization", "connection", "cookie", "expect", "host", "keep-alive"),
        *("origin", "proxy-authorization", "te", "trailer", "upgrade", "x-api-key"),
    )
)
_NOT_BACK = frozenset(("connection", "date", "keep-alive", "server"))


@hidden  # the routes of the workbench are described
async def forward(request: Request) -> Response:
    """Forward a request to the session's workbench and return its answer."""
    instance = instance_of(request)
    try:
        return await _forward(request, instance)
    except ClientDisconnect:  # no client is left to receive the answer
        return Response(status_code=400)


async def _forward(request: Request, instance: Instance) -> Response:
    async with AsyncExitStack() as stack:
        workbench = await stack.enter_async_context(instance.use_workbench())
        answer = await _ask(request, workbench, instance)
        stack.push_async_callback(answer.aclose)
        return _Answer(answer, _pieces(answer, instance), stack.pop_all())


class _Answer(StreamingResponse):
    """The answer of a workbench; it keeps the workbench in use until it is sent."""

    def __init__(
        self, answer: httpx.Response, pieces: AsyncIterator[bytes], held: AsyncExitStack
    ) -> None:
        super().__init__(pieces, answer.status_code)
        self.raw_headers = [
            (name.lower(), value)
            for name, value in answer.headers.raw
            if name.lower().decode("latin-1") not in _NOT_BACK
        ]
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await super().__call__(scope, receive, send)


async def _pieces(answer: httpx.Response, instance: Instance) -> AsyncIterator[bytes]:
    """Yield the body of an answer; an open end, as a terminal's, may come with the session's."""
    import httpx

    try:
        async for piece in answer.aiter_raw():
            yield piece
    except httpx.TransportError:
        if instance.end_reason is None or "content-length" in answer.headers:
            raise


async def _ask(request: Request, workbench: Workbench, instance: Instance) -> httpx.Response:
    import httpx  # imported here so that the start of the double does not wait for it

    read = asyncio.Event()
    asked = workbench.http.build_request(
        request.method,
        httpx.URL(raw_path=_target(request.scope)),
        headers=[
            (name, value) for name, value in request.headers.raw if _goes_on(name.decode("latin-1"))
        ],
        content=_body(request, read),
    )

    async def receive() -> Message:
        await read.wait()  # until then, _body receives the messages
        return await request.receive()

    try:
        return await cancel_on_disconnect(receive, workbench.http.send(asked, stream=True))
    except httpx.TransportError as error:
        lost = await workbench.ended_error(error)
        instance.check_usable()  # the end of the session is the better reason
        raise lost from error


def _target(scope: Scope) -> bytes:
    """Return the path and query of a request; the path is undecoded, as httpx requires."""
    path: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    return path + b"?" + query if query else path


def _goes_on(name: str) -> bool:
    return name.lower() not in _STAYS_HERE


async def _body(request: Request, read: asyncio.Event) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        if chunk:
            yield chunk
    read.set()
