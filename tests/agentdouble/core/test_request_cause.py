"""The cause of a request: the journal entry in whose code run_code was called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator, MCPApp, SimpleApp, run_code
from agentdouble.core.request_cause import HEADER
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import body_of, http, sessions_of, signed

WHO = {"user_id": "ann", "session_id": "s1"}

app = SimpleApp("causing")
tools = MCPApp("tools")


@app.entrypoint
async def entrypoint(payload: dict[str, Any], _headers: dict[str, str]) -> Any:
    if payload.get("stream"):
        return _chunks()
    return run_code("print(1)")


async def _chunks() -> Any:
    yield run_code("print(1)")
    yield run_code("print(2)")


@tools.tool
def calculate() -> str:
    """Run some code."""
    return run_code("print(1)")


@tools.tool
async def calculate_soon() -> str:
    """Run some code on the loop of the application."""
    return run_code("print(1)")


@pytest.fixture(scope="module")
def _causing() -> Iterator[Emulator]:
    with Emulator(app, tools) as double:
        yield double


@pytest.fixture
def double(_causing: Emulator) -> Emulator:
    """A double with an empty journal and applications that run code."""
    http.delete(f"{_causing.url}/_emulator/journal")
    return _causing


def entries(double: Emulator, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = http.get(f"{double.url}/_emulator/journal", params=query).json()[
        "entries"
    ]
    return items


def causes(double: Emulator) -> list[tuple[str, int | None]]:
    """Return the URL and the cause of each InvokeTool, after checking its session."""
    living = {session.id for session in sessions_of(double).living()}
    listed = entries(double, action="InvokeTool")
    assert {entry["session"] for entry in listed} <= living
    return [(entry["url"], entry["caused_by"]) for entry in listed]


@pytest.mark.parametrize(("payload", "calls"), [({}, 1), ({"stream": True}, 2)], ids=str)
def test_an_invocation_is_a_cause(double: Emulator, payload: dict[str, Any], calls: int) -> None:
    assert http.post(f"{double.url}/invoke", json=payload, headers=WHO).is_success

    (cause,) = entries(double, path="/invoke")
    assert [cause["id"]] * calls == [id_ for _, id_ in causes(double)]
    assert (None, None) == (cause["caused_by"], cause["session"])
    assert calls == len(entries(double, caused_by=cause["id"]))


@pytest.mark.parametrize("path", ["run", "run_sse"])
def test_an_agent_run_is_a_cause(double: Emulator, path: str) -> None:
    """The agent runs on another loop."""
    sessions = f"{double.url}/apps/coder/users/ann/sessions"
    session = http.post(sessions, json={}).json()["id"]
    run = {
        "app_name": "coder",
        "user_id": "ann",
        "session_id": session,
        "new_message": {"role": "user", "parts": [{"text": "print(1)"}]},
    }
    assert http.post(f"{double.url}/{path}", json=run).is_success

    (cause,) = entries(double, path=f"/{path}")
    assert [cause["id"]] == [id_ for _, id_ in causes(double)]


@pytest.mark.parametrize("tool", ["calculate", "calculate_soon"])
def test_an_mcp_tool_call_is_a_cause(double: Emulator, tool: str) -> None:
    """The request that opened the session does not."""
    url = f"{double.url}/mcp"
    session = mcp_wire.open_session(url, None)
    for _ in range(2):
        call = mcp_wire.message("tools/call", {"name": tool, "arguments": {}})
        assert mcp_wire.post(url, call, None, session).is_success

    calls = [
        entry["id"]
        for entry in entries(double, path="/mcp", bodies="true")
        if "tools/call" in entry["request_body"]
    ]
    assert calls == [id_ for _, id_ in causes(double)]


@pytest.mark.parametrize(
    "forged",
    ["1", "{id}", "0000000000000000-{id}", "{name}-99999999", "{name}-0", "{name}-{id}x", "\xff"],
)
def test_a_forged_cause_is_ignored(double: Emulator, forged: str) -> None:
    """It names no entry of this journal, and the answer is unchanged."""
    http.get(f"{double.url}/ping")
    (first,) = entries(double)
    sent = forged.format(id=first["id"], name=double.journal.name).encode("latin-1")
    body = signed(double, body_of(double, "1"))

    answer = http.post(body.url, headers={**body.headers, HEADER: sent}, content=body.body)

    assert 200 == answer.status_code
    assert [None] == [id_ for _, id_ in causes(double)]


REMOTE = """
from agentdouble import A2AApp, MCPApp, SimpleApp, run_code

simple, mcp, a2a = SimpleApp("simple"), MCPApp("mcp"), A2AApp("a2a", runner="coder")

@simple.entrypoint
async def entrypoint(payload, headers):
    return run_code("print(1)")

@mcp.tool
def calculate() -> str:
    return run_code("print(1)")
"""
CALL = mcp_wire.message("tools/call", {"name": "calculate", "arguments": {}})
SEND = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "print(1)"}]}


@pytest.mark.slow
def test_a_runtime_passes_its_cause_on(tmp_path: Path) -> None:
    """The request forwarded to the runtime's process is the cause."""
    (tmp_path / "remote.py").write_text(REMOTE)
    tables = [
        {"name": name, "directory": str(tmp_path), "application": f"remote:{name}"}
        for name in ("simple", "mcp", "a2a")
    ]
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": SEND}}
    with Emulator(runtimes=tables) as double:
        place = f"{double.url}/runtimes"
        session = mcp_wire.open_session(f"{place}/mcp/mcp", None)
        answers = [
            http.post(f"{place}/simple/invoke", json={}, headers=WHO),
            mcp_wire.post(f"{place}/mcp/mcp", CALL, None, session),
            http.post(f"{place}/a2a/", json=rpc, headers={"A2A-Version": "1.0"}),
        ]

        assert not [answer.text for answer in answers if '"error"' in answer.text]
        urls = {entry["id"]: entry["url"].removeprefix(place) for entry in entries(double)}
        assert ["/simple/invoke", "/mcp/mcp", "/a2a/"] == [
            urls[id_ or 0] for _, id_ in causes(double)
        ]
