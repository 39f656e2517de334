"""An MCP application whose functions use the context, and the official client to call it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.from_thread
import anyio.lowlevel
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context as SdkContext
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import (
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    TextContent,
)
from pydantic import BaseModel

from agentdouble import Context, MCPApp

ASK_FOR_ROOTS = InputRequiredResult(
    input_requests={"roots": ListRootsRequest()}, request_state="asked"
)


class Name(BaseModel):
    name: str


class Asking:
    """The state of a waiting tool: ``begun``, and ``ended`` however it ends."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()


def notes(sampling: Asking | None = None) -> MCPApp:
    """Return the application."""
    app = MCPApp("notes")
    _add_tools(app, sampling or Asking())
    _add_resources(app)
    _add_prompts(app)
    return app


def _add_tools(app: MCPApp, sampling: Asking) -> None:
    @app.tool
    async def work(steps: int, ctx: Context) -> int:
        for step in range(steps):
            await ctx.report_progress(step, steps, f"step {step}")
        return steps

    @app.tool
    async def tell(ctx: Context) -> None:
        await ctx.debug("a detail")
        await ctx.info("a line")
        await ctx.warning({"of": "a problem"}, logger_name="notes")

    @app.tool
    async def ask(ctx: Context) -> str:
        sampling.begun.set()
        try:
            answer = await ctx.elicit("Who are you?", Name)
        finally:
            sampling.ended.set()
        return answer.data.name if answer.action == "accept" else answer.action

    @app.tool
    async def think(ctx: Context) -> str:
        answer: Any = await ctx.sample("The capital of France?", system_prompt="Be short.")
        return str(answer.text)

    @app.tool
    def sync(a: int, ctx: SdkContext, b: int = 2) -> list[str]:  # type: ignore[type-arg]
        anyio.from_thread.run(ctx.info, "from a thread")
        assert ctx.headers is not None
        return [f"{a + b}", type(ctx).__name__, str(ctx.protocol_version), ctx.headers["user_id"]]

    @app.tool
    async def optional(ctx: Context | None = None) -> str:
        assert ctx is not None
        return ctx.request_id

    @app.tool
    async def read(uri: str, ctx: Context) -> list[str]:
        return [str(content.content) for content in await ctx.read_resource(uri)]

    @app.tool
    def ask_in_rounds(ctx: Context) -> str | InputRequiredResult:
        roots = (ctx.input_responses or {}).get("roots")
        if not isinstance(roots, ListRootsResult):
            return ASK_FOR_ROOTS
        return f"{ctx.request_state}: {roots.roots[0].uri}"

    @app.tool
    async def change(uri: str, ctx: Context) -> None:
        await ctx.notify_resource_updated(uri)


def _add_resources(app: MCPApp) -> None:
    @app.resource("notes://all", title="All", mime_type="text/markdown")
    async def all_notes(ctx: Context) -> str:
        """All notes."""
        return f"# All, for {ctx.headers['user_id'] if ctx.headers else None}"

    @app.resource("notes://bytes")
    def some_bytes() -> bytes:
        return b"\x00\xff"

    @app.resource("notes://one/{name}/{number}")
    def one_note(name: str, number: int) -> dict[str, Any]:
        if name == "raise":
            raise KeyError("no such note")
        if name == "exit":
            sys.exit(3)
        return {"name": name, "number": number}

    @app.resource("notes://rounds/{name}")
    def in_rounds(name: str, ctx: Context) -> str | InputRequiredResult:
        return name if ctx.input_responses else ASK_FOR_ROOTS

    @app.resource("notes://rounds")
    def without_rounds() -> object:
        return ASK_FOR_ROOTS


def _add_prompts(app: MCPApp) -> None:
    @app.prompt
    def greet(name: str, times: int = 1) -> str:
        """Greet somebody."""
        if name == "raise":
            raise ValueError("no such person")
        return f"Greet {name}. " * times

    @app.prompt(name="read", title="Read")
    async def read_note(uri: str, ctx: Context) -> list[str]:
        return [str(content.content) for content in await ctx.read_resource(uri)]

    @app.prompt
    def odd() -> list[Any]:
        return [{"role": "nobody", "content": "x"}]

    @app.completion
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        if argument.value == "raise":
            raise ValueError("no idea")
        values = {"odd": 5, "many": [f"{n}" for n in range(150)], "none": None}
        return values.get(argument.value, [f"{argument.value}{argument.name}"])


LEGACY, MODERN = ERAS = "legacy", "2026-07-28"
TIMEOUT_S = 60


def ask(url: str, mode: str, test: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Connect a client and return the result of a test function."""

    async def run() -> Any:
        async with create_mcp_http_client(headers={"user_id": "ann"}) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=mode, **options) as client:
                return await asyncio.wait_for(test(client), TIMEOUT_S)

    return asyncio.run(run())


async def error_of(awaitable: Awaitable[Any]) -> tuple[int, str]:
    """Return the code and the message of a request's error."""
    try:
        answer = await awaitable
    except MCPError as error:
        return error.error.code, error.error.message
    raise AssertionError(f"{answer} is not an error.")


def text_of(result: Any) -> str:
    """Return the text of a result."""
    return "\n".join(item.text for item in result.content if isinstance(item, TextContent))


def answer_with(result: ElicitResult) -> Any:
    """Return a user who gives every question the same answer."""

    async def fill_in(_context: Any, _params: Any) -> ElicitResult:
        return result

    return fill_in
