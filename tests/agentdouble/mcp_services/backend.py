"""A backend for services: a real MCP server, beside routes that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agentdouble.mcp_hosting import McpEndpoint
from tests.ports import served

CREDENTIALS = "Bearer the-backend-s-own-secret"
SCHEMA: dict[str, Any] = {"type": "object"}
TOOLS = ("echo", "progress", "ask", "hang")
API: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "Pets", "version": "1"},
    "host": "pets.example",
    "schemes": ["http"],
    "securityDefinitions": {"key": {"type": "apiKey", "in": "query", "name": "k"}},
    "paths": {"/pets": {"get": {"operationId": "pets", "responses": {"200": {"description": ""}}}}},
}


@dataclass
class Backend:
    """A backend on a free port that records its requests."""

    url: str = ""
    received: list[dict[str, str]] = field(default_factory=list)
    callers: list[int] = field(default_factory=list)  # the ports of the connections
    entered: threading.Event = field(default_factory=threading.Event)
    exited: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        endpoint = McpEndpoint(lambda: server(self))
        routes = [
            Route("/mcp", _Watched(self, endpoint)),
            Route("/needy", _Watched(self, endpoint, needs=CREDENTIALS)),
            Route("/moved", _Moved()),
            Route("/elsewhere", _elsewhere, methods=["POST"]),
            Route("/mute", self._mute, methods=["POST"]),
            Route("/page", self._page, methods=["GET", "POST"]),
            Route("/fault", lambda _r: PlainTextResponse(f"at {self.url}", 500), methods=["POST"]),
        ]
        self._app = Starlette(routes=routes, lifespan=lambda _app: endpoint.running())

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[Backend]:
        with served(self._app, port) as self.url:
            try:
                yield self
            finally:
                self.go_on.set()

    def clear(self) -> None:
        self.received.clear()
        self.callers.clear()
        for event in (self.entered, self.exited, self.go_on):
            event.clear()

    async def _mute(self, request: Request) -> Response:
        """Answer nothing until the caller disconnects."""
        await request.body()
        self.entered.set()
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.exited.set()
        return Response()

    async def _page(self, request: Request) -> Response:
        page = f"<p>Welcome to {self.url}</p>"
        return Response(page, media_type="text/html", headers={"Server": "secret-server/1"})


class _Watched:
    def __init__(self, backend: Backend, app: McpEndpoint, needs: str | None = None) -> None:
        self._backend = backend
        self._app = app
        self._needs = needs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self._backend.received.append(headers)
        self._backend.callers.append(scope["client"][1])
        if self._needs not in (None, headers.get("authorization")):
            challenge = {"WWW-Authenticate": f"Bearer resource_metadata={self._backend.url}"}
            await Response("who are you?", 401, challenge)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Moved:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await RedirectResponse("/mcp", 307)(scope, receive, send)


def _elsewhere(_request: Request) -> Response:
    return RedirectResponse("http://elsewhere.example/mcp", 307)


def server(backend: Backend) -> Server[Any]:
    """Return a server whose tools echo, report progress, ask the caller and hang."""

    async def call(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        value: dict[str, Any] = {"arguments": params.arguments}
        if params.name == "progress":
            await context.session.report_progress(1, 2, "half")
            await asyncio.to_thread(backend.go_on.wait, 30)
        elif params.name == "ask":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            result = await context.session.elicit_form("who?", schema, context.request_id)
            value = {"action": result.action, "content": result.content}
        elif params.name == "hang":
            backend.entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                backend.exited.set()
        elif params.name == "announce":
            await context.session.send_resource_updated("test://one")
        return types.CallToolResult(content=[], structured_content=value)

    async def tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name=tool, input_schema=SCHEMA) for tool in TOOLS]
        )

    async def read(
        _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        text = types.TextResourceContents(uri=params.uri, text="the text")
        return types.ReadResourceResult(contents=[text])

    return Server("behind", on_list_tools=tools, on_call_tool=call, on_read_resource=read)


@contextmanager
def talking(answer: bytes, *, stays: bool = False) -> Iterator[str]:
    """Serve connections that receive these bytes, then an end.

    The client ends a connection that ``stays``. A server must not end one unannounced: a request
    already on its way would be lost.
    """
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    accepted.append(connection)
                    with connection:
                        while connection.recv(65536):
                            connection.sendall(answer)
                            if not stays:
                                break

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for sock in (listener, *accepted):
            with contextlib.suppress(OSError):  # it is closed
                sock.shutdown(socket.SHUT_RDWR)
        thread.join()
