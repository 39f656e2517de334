"""Backends that stop and restart, and callers that disconnect."""

from __future__ import annotations

import threading

import anyio
import mcp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentdouble.mcp_services import openapi
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread
from tests import ports
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.mcp_services.openapi.calling import openapi_3, text


def serve(app: Starlette, port: int = 0) -> tuple[ServerThread, str]:
    listener = open_socket("127.0.0.1", port)
    server = ServerThread(app, listener)
    server.start()
    return server, address_of(listener)


def test_restarted_api_is_called_again() -> None:
    """The same server reports it missing, then calls it."""
    app = Starlette(routes=[Route("/", lambda _request: PlainTextResponse("here"))])
    definition = openapi.load(openapi_3(path="/", method="get"))

    async def ask(port: int) -> list[str]:
        backend, url = serve(app, port)
        async with mcp.Client(openapi.server(definition, base_url=url)) as client:
            texts = [text(await client.call_tool("op", {}))]
            await anyio.to_thread.run_sync(backend.stop)
            texts.append(text(await client.call_tool("op", {})))
            again, _ = serve(app, port)
            texts.append(text(await client.call_tool("op", {})))
            await anyio.to_thread.run_sync(again.stop)
            return texts

    with ports.reserved() as port:
        assert ["here", "The API cannot be reached.", "here"] == anyio.run(ask, port)


def test_disconnecting_caller_cancels_the_request() -> None:
    requested, closed = threading.Event(), threading.Event()

    async def hang(request: Request) -> Response:
        requested.set()
        while (await request.receive())["type"] != "http.disconnect":
            pass
        closed.set()
        return Response()

    backend, url = serve(Starlette(routes=[Route("/", hang)]))
    definition = openapi.load(openapi_3(path="/", method="get"))

    async def ask() -> None:
        async with mcp.Client(openapi.server(definition, base_url=url)) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "op", {})
                assert await anyio.to_thread.run_sync(requested.wait, TIMEOUT_S)
                tasks.cancel_scope.cancel()
            assert await anyio.to_thread.run_sync(closed.wait, TIMEOUT_S)

    anyio.run(ask)
    backend.stop()
