from __future__ import annotations

import sys
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentdouble.mcp_services import CommandBackend
from tests.agentdouble.mcp_services.stdio.conftest import HERE, KEY, Services


@pytest.mark.slow
def test_official_client_uses_the_official_server(services: Services) -> None:
    """In a session, whichever request is first; progress precedes the result."""
    backend = CommandBackend((sys.executable, "sdk_server.py"), HERE)
    services.double.mcp.create("sdk", backend, key=KEY)
    url = f"{services.double.url}/mcp/sdk"
    messages: list[Any] = []

    async def progress(now: float, total: float | None, _message: str | None) -> None:
        messages.append((now, total))

    async def use(mode: str) -> None:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            messages.append(client.protocol_version)
            messages.append([tool.name for tool in (await client.list_tools()).tools])
            added = await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=progress)
            messages.append(added.structured_content)

    for mode in ("auto", "legacy"):
        anyio.run(use, mode)

    assert 2 * ["2025-11-25", ["add"], (1, 2), {"result": 3}] == messages
