"""Runtimes behind the gateway: requests, official clients, and addresses in agent cards."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S, http
from tests.agentdouble.runtimes.asking import APPLICATIONS, shown_runtime


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double whose runtimes know only their own port."""

    def table(name: str, application: str, **fields: Any) -> dict[str, Any]:
        return {"name": name, "application": application, "directory": str(APPLICATIONS), **fields}

    tables = [
        table("telling", "simple:app"),
        table("mcp", "speaking:mcp", min_instances=2),
        table("a2a", "speaking:a2a"),
        table("carded", "carded:app", max_instances=1),
        table("anything", "carded:anything", max_instances=1),
    ]
    with Emulator(runtimes=tables) as double:
        yield double


def test_runtime_answers_from_a_separate_process(double: Emulator) -> None:
    """It is started by the first request, and streams."""
    answer = http.post(f"{double.url}/runtimes/telling/invoke", json={"prompt": "one two"})

    first, *words = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert (200, ["one", "two"]) == (answer.status_code, words)
    assert os.getpid() != int(first)
    assert "pong!" in http.get(f"{double.url}/runtimes/telling/ping").text


def test_unknown_runtime_is_not_found(double: Emulator) -> None:
    """The error names it and lists the existing ones."""
    answer = http.get(f"{double.url}/runtimes/nobody/ping")

    assert (
        404,
        "There is no runtime 'nobody'. There are telling, mcp, a2a, carded, anything.",
    ) == (
        answer.status_code,
        answer.json()["error"]["message"],
    )


def test_websocket_is_refused_by_name() -> None:
    """Before an instance starts."""
    runtime = {"name": "ws", "command": [sys.executable, "-c", ""]}
    with Emulator(runtimes=[runtime]) as double:
        url = f"ws{double.url.removeprefix('http')}/runtimes/ws/echo"
        with pytest.raises(InvalidStatus) as refused:
            connect(url, proxy=None, open_timeout=TIMEOUT_S)
        described = shown_runtime(double, "ws")

    assert 501 == refused.value.response.status_code
    assert "A WebSocket to a runtime" in json.loads(refused.value.response.body)["error"]["message"]
    assert [] == described["instances"]


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


CARD = "/.well-known/agent-card.json"


def addresses(card: dict[str, Any]) -> set[str]:
    """Return the interface addresses of a card."""
    urls = [card["url"]] if "url" in card else []
    interfaces = card.get("supportedInterfaces", []) + card.get("additionalInterfaces", [])
    return {*urls, *(interface["url"] for interface in interfaces)}


@pytest.mark.parametrize("version", ["", "1.0", "0.3"])
def test_card_names_the_gateway(double: Emulator, version: str) -> None:
    """In both versions' forms, although the application's card names its port."""
    url = f"{double.url}/runtimes/carded"
    answer = http.get(url + CARD, headers={"A2A-Version": version})

    assert {url} == addresses(answer.json())
    assert str(len(answer.content)) == answer.headers["content-length"]


def test_only_the_instance_s_address_is_rewritten(double: Emulator) -> None:
    """Paths and queries are kept; other addresses and the tag stay."""
    url = f"{double.url}/runtimes/anything"
    answer = http.get(url + CARD, headers={"Accept-Encoding": "gzip"})
    addresses = [interface["url"] for interface in answer.json()["supportedInterfaces"][:3]]

    assert [f"{url}/", f"{url}/rpc?a=b", "https://elsewhere.example/a2a"] == addresses
    assert '"one"' == answer.headers["etag"]


@pytest.mark.parametrize("path", ["/signed" + CARD, "/large" + CARD, "/other.json"])
def test_unsuitable_documents_are_passed_on(double: Emulator, path: str) -> None:
    """Signed cards, huge answers and other documents stay unchanged."""
    answer = http.get(f"{double.url}/runtimes/anything{path}")

    assert 200 == answer.status_code
    assert "http://localhost:" in answer.text
