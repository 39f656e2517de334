from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S

APPLICATIONS = Path(__file__).with_name("applications")


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    def table(name: str, **fields: Any) -> dict[str, Any]:
        application = f"speaking:{name}"
        return {"name": name, "application": application, "directory": str(APPLICATIONS), **fields}

    with Emulator(runtimes=[table("mcp", min_instances=2), table("a2a")]) as double:
        yield double


@pytest.mark.anyio
async def test_official_mcp_client_talks_to_a_runtime(double: Emulator) -> None:
    """Also several at once: a session stays with its instance."""
    url = f"{double.url}/runtimes/mcp/mcp"

    async def talk(number: int) -> tuple[Any, set[Any]]:
        async with Client(streamable_http_client(url), mode="legacy") as client:
            added = await client.call_tool("add", {"a": number, "b": 1})
            processes = [await client.call_tool("process", {}) for _ in range(3)]
        return _value(added), {_value(process) for process in processes}

    results = await asyncio.gather(*(talk(number) for number in range(3)))

    assert [1, 2, 3] == [added for added, _ in results]
    assert [1, 1, 1] == [len(processes) for _, processes in results]


@pytest.mark.anyio
async def test_official_a2a_client_talks_to_a_runtime(double: Emulator) -> None:
    """By the address in the application's card, which is the gateway's."""
    url = f"{double.url}/runtimes/a2a"
    async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as http:
        config = ClientConfig(streaming=True, httpx_client=http)
        async with await create_client(url, config) as client:
            request = SendMessageRequest(message=new_text_message("hi", role=Role.ROLE_USER))
            events = [event async for event in client.send_message(request)]
        card = (await http.get(f"{url}/.well-known/agent-card.json")).json()

    assert "completed" in str(events[-1]).lower()
    assert {f"{url}/"} == {entry["url"].rstrip("/") + "/" for entry in card["supportedInterfaces"]}


def _value(result: Any) -> Any:
    return result.structured_content["result"]
