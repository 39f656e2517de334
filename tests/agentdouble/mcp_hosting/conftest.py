from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp import types
from mcp.server import Server, ServerRequestContext
from starlette.applications import Starlette
from starlette.routing import Route

from agentdouble.mcp_hosting import Host
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread
from tests.agentdouble.calling import TIMEOUT_S

SCHEMA = {"type": "object", "properties": {"value": {}}}


@dataclass
class Hosting:
    """A host served on a free port, with access to it on its loop."""

    host: Host = field(default_factory=Host)
    url: str = ""

    def __post_init__(self) -> None:
        listener = open_socket("127.0.0.1", 0)
        self.url = address_of(listener)
        app = Starlette(
            routes=[Route("/mcp/{name:path}", self.host)], lifespan=lambda _app: self.host.running()
        )
        self.thread = ServerThread(app, listener)

    def at(self, name: str) -> str:
        return f"{self.url}/mcp/{name}"

    def add(self, name: str, app: Any, *keys: str) -> str:
        self.thread.call(self.host.add(name, app, keys))
        return self.at(name)

    def remove(self, name: str) -> None:
        self.thread.call(self.host.remove(name))

    def rekey(self, name: str, *keys: str) -> None:
        async def rekey() -> None:
            self.host.rekey(name, keys)

        self.thread.call(rekey())


@pytest.fixture(scope="module")
def hosting() -> Iterator[Hosting]:
    """A host for a module's tests, each of which uses unique service names."""
    hosting = Hosting()
    hosting.thread.start()
    yield hosting
    hosting.thread.stop()


@dataclass
class Gate:
    """A gate for tools on the server's loop; the test sees when a tool arrives and leaves."""

    hosting: Hosting
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    exited: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.exited.set()

    def see(self, event: asyncio.Event) -> None:
        """Wait until an event has been set; raise TimeoutError after a while."""
        self.hosting.thread.call(asyncio.wait_for(event.wait(), TIMEOUT_S))


@pytest.fixture
def gate(hosting: Hosting) -> Gate:
    async def make() -> Gate:
        return Gate(hosting)

    return hosting.thread.call(make())


def make_server(
    name: str = "plain",
    *,
    hang: Callable[[], Any] | None = None,
    lifespan: Callable[[Any], Any] | None = None,
) -> Server[Any]:
    """Return a server with the tools echo, progress, exit and hang."""

    async def call(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name == "exit":
            raise SystemExit(3)
        if params.name == "hang" and hang is not None:
            await hang()
        if params.name == "progress":
            await context.session.report_progress(1, 2, "half")
        value = {"server": name, "value": (params.arguments or {}).get("value")}
        return types.CallToolResult(content=[], structured_content=value)

    async def tools(_context: Any, _params: Any) -> types.ListToolsResult:
        names = ("echo", "progress", "exit", "hang")
        return types.ListToolsResult(
            tools=[types.Tool(name=name, input_schema=SCHEMA) for name in names]
        )

    more = {} if lifespan is None else {"lifespan": lifespan}
    return Server(name, on_list_tools=tools, on_call_tool=call, **more)
