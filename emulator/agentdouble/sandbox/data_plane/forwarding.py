"""Forwarding to a session's workbench: requests, and the terminals of ``WS /v1/shell/ws``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from agentdouble.errors import NotBuiltError, SandboxError
from agentdouble.sandbox.data_plane.session_token import close_gone, processes_of, sandbox_error
from agentdouble.sandbox.workbench.wire import until_one_ends
from agentdouble.server.disconnects import cancel_on_disconnect

if TYPE_CHECKING:
    from agentdouble.sandbox.local_processes import LocalProcesses
    from agentdouble.sandbox.session import SandboxSession
    from agentdouble.sandbox.workbench.client import Workbench

_STAYS_HERE = frozenset(  # headers for this server, not for the workbench
    (
        *("authorization", "connection", "cookie", "expect", "host", "keep-alive"),
        *("origin", "proxy-authorization", "te", "trailer", "upgrade", "x-api-key"),
    )
)
_NOT_BACK = frozenset(("connection", "date", "keep-alive", "server"))


async def forward(request: Request) -> Response:
    """Forward a request to the session's workbench and return its answer."""
    try:
        return await _forward(request, processes_of(request))
    except ClientDisconnect:  # no client is left to receive the answer
        return Response(status_code=400)


async def _forward(request: Request, processes: LocalProcesses) -> Response:
    async with AsyncExitStack() as stack:
        workbench = await stack.enter_async_context(processes.use_workbench())
        answer = await _ask(request, workbench, processes.session)
        stack.push_async_callback(answer.aclose)
        return _Answer(answer, _pieces(answer, processes.session), stack.pop_all())


class _Answer(StreamingResponse):
    """The response of a workbench, which counts as in use until the response is sent."""

    def __init__(
        self, answer: httpx.Response, pieces: AsyncIterator[bytes], exit_stack: AsyncExitStack
    ) -> None:
        super().__init__(pieces, answer.status_code)
        self.raw_headers = [
            (name.lower(), value)
            for name, value in answer.headers.raw
            if name.lower().decode("latin-1") not in _NOT_BACK
        ]
        self._held = exit_stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await super().__call__(scope, receive, send)


async def _pieces(answer: httpx.Response, session: SandboxSession) -> AsyncIterator[bytes]:
    """Yield the body of a response; it may break off when the session ends."""
    try:
        async for piece in answer.aiter_raw():
            yield piece
    except httpx.TransportError:
        if session.end_reason is None or "content-length" in answer.headers:
            raise


async def _ask(request: Request, workbench: Workbench, session: SandboxSession) -> httpx.Response:
    read = asyncio.Event()
    forwarded = workbench.http.build_request(
        request.method,
        httpx.URL(raw_path=target(request.scope)),
        headers=[
            (name, value) for name, value in request.headers.raw if _goes_on(name.decode("latin-1"))
        ],
        content=_body(request, read),
    )

    async def receive() -> Message:
        await read.wait()  # until then, _body receives the messages
        return await request.receive()

    try:
        return await cancel_on_disconnect(receive, workbench.http.send(forwarded, stream=True))
    except httpx.TransportError as error:
        lost = await workbench.ended_error(error)
        session.check_usable()  # the end of the session is the better reason
        raise lost from error


def target(scope: Scope) -> bytes:
    """Return the path and query of a request; the path is undecoded, as httpx requires."""
    path: bytes = scope["raw_path"].partition(b"?")[0]  # some clients leave the query there
    query: bytes = scope["query_string"]
    return path + b"?" + query if query else path


def _goes_on(name: str) -> bool:
    return name.lower() not in _STAYS_HERE


async def _body(request: Request, read: asyncio.Event) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        if chunk:
            yield chunk
    read.set()


async def terminal(websocket: WebSocket) -> None:
    """Connect a client to a terminal of the session."""
    processes = processes_of(websocket)
    try:
        async with processes.use_workbench() as workbench:
            await _connect(websocket, workbench, processes.session)
    except (SandboxError, NotBuiltError) as error:
        await websocket.send_denial_response(await sandbox_error(websocket, error))


async def _connect(websocket: WebSocket, workbench: Workbench, session: SandboxSession) -> None:
    query = websocket.scope["query_string"].decode("latin-1")
    uri = f"ws://workbench/v1/shell/ws?{query}"
    try:
        inside = await unix_connect(str(workbench.socket), uri, compression=None, max_size=None)
    except (OSError, InvalidHandshake) as error:
        raise await workbench.ended_error(error) from error
    if await bridge(websocket, inside):
        await _hang_up(websocket, inside, session)


async def _hang_up(websocket: WebSocket, inside: ClientConnection, session: SandboxSession) -> None:
    if session.end_reason is None and inside.close_code in (1000, 1013):
        await websocket.close(inside.close_code)  # its bash has ended, or there is no room
        return
    await close_gone(websocket, session.end_reason or "the session's workbench has ended")


async def bridge(websocket: WebSocket, inside: ClientConnection) -> bool:
    """Pass messages both ways until one side ends; return whether the client is still there."""
    async with inside:
        await websocket.accept()
        with contextlib.suppress(ConnectionClosed):  # the other side has ended
            await until_one_ends(_pass_in(websocket, inside), _pass_out(websocket, inside))
    return websocket.client_state.name == "CONNECTED"


async def _pass_in(websocket: WebSocket, inside: ClientConnection) -> None:
    """Pass a client's messages on until it disconnects."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        await inside.send(message["bytes"] if text is None else text)


async def _pass_out(websocket: WebSocket, inside: ClientConnection) -> None:
    messages: AsyncIterator[str | bytes] = aiter(inside)
    async for message in messages:
        try:
            if isinstance(message, str):
                await websocket.send_text(message)
            else:
                await websocket.send_bytes(message)
        except (RuntimeError, WebSocketDisconnect):  # it has disconnected meanwhile
            return
