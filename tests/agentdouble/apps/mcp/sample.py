"""An MCP application with tools of every kind."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import threading
from typing import Any

from mcp import MCPError
from mcp.types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel

from agentdouble import MCPApp, run_code


class Item(BaseModel):
    name: str
    parts: list[Item] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Gate:
    """The gate of a blocking tool; ``come`` is set when it waits."""

    def __init__(self) -> None:
        self.come = threading.Event()
        self.open = threading.Event()
        self.exited = threading.Event()

    def wait(self) -> str:
        self.come.set()
        assert self.open.wait(60)
        return "opened"


def sample(gate: Gate | None = None) -> MCPApp:
    """Return the application."""
    gate = gate or Gate()
    app = MCPApp("sample", instructions="Call add.")

    @app.tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @app.tool
    async def add_later(a: int, b: int = 1) -> int:
        await asyncio.sleep(0)
        return a + b

    @app.tool
    def bare(value: Any) -> dict:  # type: ignore[type-arg]
        return {"value": value}

    @app.tool
    def unannotated():  # type: ignore[no-untyped-def]
        return {"value": [1, None]}

    @app.tool
    def tree(item: Item, point: Point) -> dict[str, Any]:
        return {"item": item.name, "parts": [part.name for part in item.parts], "y": point.y}

    @app.tool
    def grow(name: str) -> Item:
        return Item(name=name, parts=[Item(name="leaf")])

    @app.tool
    def names() -> list[str]:
        return ["a", "b"]

    @app.tool
    def nothing() -> None:
        return None

    @app.tool
    def liar() -> int:
        return []  # type: ignore[return-value]

    @app.tool
    def fail(kind: str) -> str:
        """Raise."""
        secret = "secret " + kind
        if kind == "exit":
            sys.exit(3)
        if kind == "key":
            return {"a": secret}["city"]
        if kind == "silent":
            raise ValueError
        if kind == "protocol":
            raise MCPError(-32042, "go away")
        raise RuntimeError("no such city")

    @app.tool
    async def fail_later() -> str:
        sys.exit(4)

    @app.tool
    def picture() -> list[Any]:
        return [TextContent(text="a"), ImageContent(data="aGk=", mime_type="image/png")]

    @app.tool
    def refusing() -> CallToolResult:
        return CallToolResult(content=[TextContent(text="not today")], is_error=True)

    @app.tool
    def positional(a: int, /, *, copy: int) -> list[int]:
        return [a, copy]

    @app.tool
    def code(source: str) -> dict[str, Any]:
        """Run code, blocking."""
        result: dict[str, Any] = json.loads(run_code(source))
        return {"outputs": [output["text"] for output in result["data"]["outputs"]]}

    @app.tool
    async def code_blocking_its_loop(source: str) -> str:
        return run_code(source)

    @app.agent_as_a_tool
    async def agent(prompt: str) -> str:
        """Shout."""
        return prompt.upper()

    @app.tool
    def block() -> str:
        return gate.wait()

    @app.tool
    async def hang() -> None:
        gate.come.set()
        try:
            await asyncio.Event().wait()
        finally:
            gate.exited.set()

    @app.tool
    async def block_its_loop() -> str:
        return gate.wait()

    return app
