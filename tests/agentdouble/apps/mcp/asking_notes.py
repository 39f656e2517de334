"""The official client, connected to the application of ``notes.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ElicitResult, TextContent

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
