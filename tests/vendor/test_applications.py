"""agentkit's four kinds of applications, as runtimes of the double."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentdouble import Emulator
from doublecheck.contracts import reference_files
from doublecheck.contracts.reference.tools import AGENT, TOOLS
from tests import machine

KEY = "the-key"
BEARER = {"Authorization": f"Bearer {KEY}"}
FILES = {"simple": "app.py", "mcp": "mcp_app.py", "a2a": "a2a_app.py", "agents": "agent_server.py"}


@pytest.fixture(scope="module")
def hosting(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A double that hosts the reference applications on the SDK, one of each kind."""
    folder = machine.open_to_others(tmp_path_factory.mktemp("applications"))
    reference_files.write("agentkit", folder)
    runtimes = [
        {
            "name": name,
            "python": python,
            "command": f"python -W ignore {file}",
            "directory": str(folder),
            "authorizer": {"keys": [KEY]},
        }
        for name, file in FILES.items()
    ]
    with Emulator(runtimes=runtimes) as double:
        yield double


@pytest.fixture
def http(hosting: Emulator) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"{hosting.url}/runtimes", headers=BEARER, timeout=120, trust_env=False
    ) as client:
        yield client


def test_a_simple_application_is_invoked(http: httpx.Client) -> None:
    """It gets the caller's headers, streams, and its error is its own."""
    headers = {"user_id": "ann", "session_id": "s1"}

    said = http.post("/simple/invoke", json={"do": "say", "prompt": "hi"}, headers=headers)
    echoed = http.post("/simple/invoke", json={"prompt": "hi"}, headers=headers)
    streamed = http.post("/simple/invoke", json={"do": "stream", "chunks": ["one", "two"]})
    failed = http.post("/simple/invoke", json={"do": "fail", "prompt": "no luck"})

    assert "hi" == said.json()
    assert "ann" == json.loads(echoed.json())["headers"]["user_id"]
    assert ["data: one", "data: two"] == [line for line in streamed.text.splitlines() if line]
    assert (500, "error") == (failed.status_code, next(iter(failed.json())))
    assert [200] * 4 == [
        http.get(f"/simple/{probe}").status_code
        for probe in ("ping", "health", "readiness", "liveness")
    ]


def test_an_mcp_application_lists_and_calls_its_tools(hosting: Emulator) -> None:
    names, result = asyncio.run(_use_tools(f"{hosting.url}/runtimes/mcp/mcp"))

    assert {function.__name__ for function in (*TOOLS, AGENT)} <= names
    assert "5" == result


async def _use_tools(url: str) -> tuple[set[str], str]:
    """Return the names of the tools, and the result of an addition."""
    async with httpx2.AsyncClient(headers=BEARER, timeout=120, trust_env=False) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool("add", {"a": 2, "b": 3})
    return {tool.name for tool in tools}, result.content[0].text  # type: ignore[union-attr]


def test_an_a2a_application_has_a_card_and_answers(http: httpx.Client) -> None:
    """It speaks version 0.3, in JSON-RPC."""
    card = http.get("/a2a/.well-known/agent-card.json").json()
    message = {
        "role": "user",
        "kind": "message",
        "messageId": "m-1",
        "parts": [{"kind": "text", "text": "hello"}],
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}

    answer = http.post("/a2a/", json=call).json()

    assert "0.3.0" == card["protocolVersion"]
    assert "hello" in json.dumps(answer["result"])


def test_an_agent_server_keeps_sessions_and_runs(http: httpx.Client) -> None:
    """It is the API server with one agent."""
    app = "doublecheck_reference"
    sessions = f"/agents/apps/{app}/users/ann/sessions"
    session = http.post(sessions, json={}).json()["id"]
    run: dict[str, Any] = {
        "appName": app,
        "userId": "ann",
        "sessionId": session,
        "newMessage": {"role": "user", "parts": [{"text": "hello"}]},
    }

    events = http.post("/agents/run", json=run).json()
    streamed = http.post("/agents/run_sse", json=run).text

    assert [app] == http.get("/agents/list-apps").json()
    assert "hello" in json.dumps(events)
    assert streamed.startswith("data: {")
    assert 409 == http.post(sessions, json={"sessionId": session}).status_code
