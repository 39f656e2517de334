"""A program that a runtime runs: WebSockets whose paths say how the conversation goes."""

from __future__ import annotations

import asyncio
import http
import json
import os

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response


def refuse(connection: ServerConnection, request: Request) -> Response | None:
    """Refuse a handshake whose path says so."""
    if request.path == "/refused":
        response = connection.respond(http.HTTPStatus.UNAUTHORIZED, "who are you?")
        response.headers["WWW-Authenticate"] = "Bearer"
        return response
    if request.path == "/moved":
        response = connection.respond(http.HTTPStatus.TEMPORARY_REDIRECT, "")
        response.headers["Location"] = "/elsewhere"
        return response
    return None


told: asyncio.Queue[object] = asyncio.Queue()  # what happened to conversations that are over


async def converse(connection: ServerConnection) -> None:
    assert connection.request is not None
    request, path = connection.request, connection.request.path.partition(";")[0]
    if path == "/told":
        await connection.send(json.dumps(await told.get()))
    elif path == "/seen":
        headers = [[name.lower(), value] for name, value in request.headers.raw_items()]
        await connection.send(json.dumps({"path": request.path, "headers": headers}))
    elif path == "/ends":
        await connection.send("bye")
        await connection.close(4001, "enough")
    elif path == "/dies":
        os._exit(1)
    elif path == "/floods":
        await flood(connection)
    else:
        await echo(connection)


async def echo(connection: ServerConnection) -> None:
    try:
        async for message in connection:
            await connection.send(message)
    finally:
        if connection.request and connection.request.path == "/telling":
            told.put_nowait([connection.close_code, connection.close_reason])


async def flood(connection: ServerConnection) -> None:
    """Send until nobody takes it for a while, and tell how much that was."""
    sent = 0
    try:
        while sent < 10**9:
            await asyncio.wait_for(connection.send(bytes(100_000)), 0.5)
            sent += 100_000
    except (asyncio.TimeoutError, ConnectionClosed):
        told.put_nowait(sent)


async def main() -> None:
    port = int(os.environ["PORT"])
    async with serve(
        *(converse, "127.0.0.1", port),
        select_subprotocol=lambda _, offered: "first" if "first" in offered else None,
        process_request=refuse,
        max_size=None,
        close_timeout=1,
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
