"""``WS /v1/shell/ws``, forwarded to the session's workbench, which has the terminals."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect

from agentdouble.errors import NotBuiltError, SandboxError
from agentdouble.sandbox.data_plane.refusals import sandbox_error
from agentdouble.sandbox.data_plane.session_token import instance_of
from agentdouble.sandbox.instance import Instance
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from agentdouble.sandbox.workbench.client import Workbench

_GONE = 1001
_REASON_LIMIT = 120  # bytes; the protocol allows 123


async def terminal(websocket: WebSocket) -> None:
    """Connect a client to a terminal of the session."""
    instance = instance_of(websocket)
    try:
        async with instance.use_workbench() as workbench:
            await _connect(websocket, workbench, instance)
    except (SandboxError, NotBuiltError) as error:
        await websocket.send_denial_response(await sandbox_error(websocket, error))


async def _connect(websocket: WebSocket, workbench: Workbench, instance: Instance) -> None:
    await import_in_thread("websockets.asyncio.client")
    from websockets.asyncio.client import unix_connect
    from websockets.exceptions import InvalidHandshake

    query = websocket.scope["query_string"].decode("latin-1")
    uri = f"ws://workbench/v1/shell/ws?{query}"
    try:
        inside = await unix_connect(str(workbench.socket), uri, compression=None, max_size=None)
    except (OSError, InvalidHandshake) as error:
        raise await workbench.ended_error(error) from error
    async with inside:
        await websocket.accept()
        await _talk(websocket, inside)
    if websocket.client_state.name == "CONNECTED":
        await _hang_up(websocket, inside, instance)


async def _hang_up(websocket: WebSocket, inside: ClientConnection, instance: Instance) -> None:
    if instance.end_reason is None and inside.close_code in (1000, 1013):
        await websocket.close(inside.close_code)  # its bash has ended, or there is no room
        return
    reason = (instance.end_reason or "the session's workbench has ended").encode()[:_REASON_LIMIT]
    await websocket.close(_GONE, reason.decode("utf-8", "ignore"))


async def _talk(websocket: WebSocket, inside: ClientConnection) -> None:
    """Pass frames on in both directions until one side disconnects."""
    ways = {
        asyncio.ensure_future(_to_terminal(websocket, inside)),
        asyncio.ensure_future(_to_client(websocket, inside)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _to_terminal(websocket: WebSocket, inside: ClientConnection) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        await inside.send(message["bytes"] if text is None else text)


async def _to_client(websocket: WebSocket, inside: ClientConnection) -> None:
    async for message in inside:
        try:
            await websocket.send_text(str(message))
        except (RuntimeError, WebSocketDisconnect):  # it has disconnected meanwhile
            return
