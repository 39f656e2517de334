"""Documents with one operation, and calls of its tool."""

from __future__ import annotations

from typing import Any

import anyio
import mcp
from mcp.types import CallToolResult, TextContent, Tool

from agentdouble.mcp_services import openapi

Json = dict[str, Any]
ANSWERS: Json = {"responses": {"200": {"description": "fine"}}}


def openapi_3(
    operation: Json | None = None,
    *,
    path: str = "/echo",
    method: str = "post",
    version: str = "3.0.3",
    **more: Any,
) -> Json:
    """Return an OpenAPI 3 document with one operation, named ``op``."""
    return {
        "openapi": version,
        "info": {"title": "test", "version": "1"},
        "paths": {path: {method: {"operationId": "op", **ANSWERS, **(operation or {})}}},
        **more,
    }


def swagger_2(operation: Json | None = None, *, method: str = "post", **more: Any) -> Json:
    """Return a Swagger 2.0 document with one operation, named ``op``."""
    return {
        "swagger": "2.0",
        "info": {"title": "test", "version": "1"},
        "paths": {"/echo": {method: {"operationId": "op", **ANSWERS, **(operation or {})}}},
        **more,
    }


def tools(document: Json) -> list[Tool]:
    """Return the tools that a client sees."""

    async def ask() -> list[Tool]:
        server = openapi.server(openapi.load(document), base_url="http://api.example")
        async with mcp.Client(server) as client:
            page = await client.list_tools()
            all_tools = list(page.tools)
            while page.next_cursor is not None:
                page = await client.list_tools(cursor=page.next_cursor)
                all_tools += page.tools
            return all_tools

    return anyio.run(ask)


def schema(document: Json) -> Json:
    """Return the input schema of the tool ``op``."""
    (schema,) = [tool.input_schema for tool in tools(document) if tool.name == "op"]
    return schema


def call(
    document: Json, base_url: str | None, /, tool: str = "op", *, arguments: Json, **options: Any
) -> CallToolResult:
    """Call a tool of a document's server."""

    async def ask() -> CallToolResult:
        server = openapi.server(openapi.load(document), base_url=base_url, **options)
        async with mcp.Client(server) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(ask)


def capture(document: Json, base_url: str, /, arguments: Json, **options: Any) -> Json:
    """Call the tool ``op`` and return the request as received."""
    result = call(document, base_url, arguments=arguments, **options)
    assert not result.is_error, result.content
    content: Json = result.structured_content
    return content


def text(result: CallToolResult) -> str:
    """Return the only text of a result."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def refused(document: Json, base_url: str | None, /, arguments: Json, **options: Any) -> str:
    """Call the tool ``op``, which fails, and return its message."""
    result = call(document, base_url, arguments=arguments, **options)
    assert result.is_error, result
    return text(result)
