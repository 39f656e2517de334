"""What a reset keeps, and what a snapshot returns to."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator, MCPApp
from agentdouble.errors import PartError
from tests.agentdouble.apps.a2a.wire import V1, message, request
from tests.agentdouble.calling import act, http, result
from tests.agentdouble.runtimes import small

SESSIONS = "/apps/echo/users/ann/sessions"
DATA = base64.b64encode(b"\0data").decode()

PARTS = (
    "sessions",
    "session_snapshots",
    "tools",
    "mcp",
    "runtimes",
    "agent_sessions",
    "tasks",
    "journal",
    "clock",
)
NOTHING: Mapping[str, Any] = {
    **{
        key: []
        for key in (
            "sessions",
            "session_snapshots",
            "mcp",
            "runtimes",
            "agent_sessions",
            "tasks",
            "journal",
        )
    },
    "tools": ["sandbox"],
    "clock": 0.0,
    "faults": [],
}

tools = MCPApp("tools")


@tools.tool
def double_it(number: int) -> int:
    return 2 * number


@pytest.fixture(scope="module")
def _running() -> Iterator[Emulator]:
    with Emulator() as double:
        yield double


@pytest.fixture
def double(_running: Emulator) -> Emulator:
    _running.reset(keep=())
    return _running


@pytest.fixture
def program(tmp_path: Path) -> Mapping[str, Any]:
    table = small.table(tmp_path / "made", environment={"SAYS": "first"})
    return {name: value for name, value in table.items() if name != "name"}


def fill(double: Emulator, program: Mapping[str, Any]) -> None:
    """Have something in each part."""
    act(double, "CreateTool", Name="made", ToolType="CodeEnv")
    double.mcp.create("service", tools)
    double.mcp.create("far", f"{double.url}/mcp", key="far")
    double.runtimes.create("made", **program)
    http.post(f"{double.url}{SESSIONS}", json={"sessionId": "s", "state": {"a": [1], "user:u": 2}})
    say(double, "one")
    artifact(double, "f", {"text": "first"})
    artifact(double, "f", {"inlineData": {"data": DATA, "mimeType": "x/y"}})
    http.post(double.url, json=request("SendMessage", message("1 + 1")), headers=V1)
    session = result(double, "x = 1")["SessionId"]
    act(double, "CreateSessionSnapshot", ToolId=double.tool_id, SessionId=session)
    double.clock.advance(minutes=1)
    double.faults.arm("fail", "ping", nth=9, status=503)


def say(double: Emulator, words: str) -> None:
    new = {"role": "user", "parts": [{"text": words}]}
    body = {"appName": "echo", "userId": "ann", "sessionId": "s", "newMessage": new}
    http.post(f"{double.url}/run", json=body).raise_for_status()


def artifact(double: Emulator, name: str, part: Mapping[str, Any]) -> None:
    body = {"filename": name, "artifact": part}
    http.post(f"{double.url}{SESSIONS}/s/artifacts", json=body).raise_for_status()


def known(double: Emulator) -> Mapping[str, Any]:
    """What is in each part; the journal is read first, because the rest is noted in it."""
    journal = double.journal.entries()
    tasks = http.get(f"{double.url}/tasks", headers=V1).json()["tasks"]
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return {
        "journal": ["noted"] * bool(journal),
        "tools": sorted(tool["Name"] for tool in act(double, "ListTools")["Tools"]),
        "mcp": [one.name for one in double.mcp.list()],
        "runtimes": list(double.runtimes.names),
        "agent_sessions": http.get(f"{double.url}{SESSIONS}").json(),
        "tasks": [task["id"] for task in tasks],
        "sessions": [one["UserSessionId"] for one in sessions],
        "session_snapshots": [
            one["UserSessionId"]
            for one in act(double, "ListSessionSnapshots", ToolId=double.tool_id)["Snapshots"]
        ],
        "clock": double.clock.offset.total_seconds(),
        "faults": [state.fault.kind for state in double.faults.states()],
    }


def deeply(double: Emulator) -> Any:
    """All that a snapshot returns to."""
    at = f"{double.url}{SESSIONS}/s"
    paths = ("", "/artifacts", "/artifacts/f", "/artifacts/f/versions/0", "/artifacts/other")
    versions = {
        name: [(one.number, one.definition) for one in double.runtimes.versions(name)]
        for name in double.runtimes.names
    }
    agents = [http.get(at + path).text for path in paths]
    tools = act(double, "ListTools")["Tools"]
    return tools, double.mcp.list(), versions, agents, double.faults.states(), double.clock.offset


@pytest.mark.parametrize("part", [*PARTS, "faults"])
def test_each_part_can_be_kept(double: Emulator, program: Mapping[str, Any], part: str) -> None:
    """And everything else is as it was at the start."""
    fill(double, program)
    before = known(double)
    double.reset(keep=[part])

    assert before[part] != NOTHING[part]
    assert {**NOTHING, part: before[part]} == known(double)


def test_a_reset_of_memory_keeps_nothing(double: Emulator, program: Mapping[str, Any]) -> None:
    """Unless it is told to; "state" names what a state would keep, and there is none."""
    for reset in (double.reset, lambda: double.reset(keep=["state"])):
        fill(double, program)
        reset()
        assert NOTHING == known(double)


def test_a_reset_keeps_what_the_state_keeps(tmp_path: Path, program: Mapping[str, Any]) -> None:
    """Until it is told to keep nothing; then it does not come back either."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with Emulator(state=url) as double:
        fill(double, program)
        before = known(double)
        double.reset()
        kept = known(double)
    with Emulator(state=url) as double:
        restarted = known(double)
        http.post(f"{double.url}/_emulator/reset", params={"keep": ""})
        emptied = known(double)
    with Emulator(state=url) as double:
        again = known(double)

    of_the_process = {"sessions": [], "session_snapshots": [], "journal": [], "faults": []}
    assert {**before, **of_the_process, "clock": 0.0} == kept
    assert {**kept, "mcp": ["far"]} == restarted  # an application ends with its process
    assert [NOTHING, NOTHING] == [emptied, again]


def test_a_part_that_does_not_exist_is_refused(double: Emulator) -> None:
    """With those that do, and nothing is reset."""
    double.clock.advance(minutes=1)
    answer = http.post(f"{double.url}/_emulator/reset", params={"keep": "tools,services"})

    with pytest.raises(PartError, match="cannot keep 'services'; it can keep faults, clock, "):
        double.reset(keep=["services"])
    assert (400, "BadRequest") == (answer.status_code, answer.json()["error"]["type"])
    assert 60 == double.clock.offset.total_seconds()


def test_a_double_returns_to_a_snapshot_as_often_as_it_is_asked_to(
    double: Emulator, program: Mapping[str, Any]
) -> None:
    """What was deleted, changed and made since then is as it was; what cannot be is ended."""
    fill(double, program)
    before = deeply(double)
    snapshot = double.snapshot()
    for _ in range(2):
        change(double)
        changed = deeply(double)
        double.restore(snapshot)

        assert all(one != other for one, other in zip(before, changed, strict=True))
        assert before == deeply(double)
    after = known(double)
    assert ([], []) == (after["sessions"], after["tasks"])
    assert works(double) == 42
    assert "first" in http.get(f"{double.runtimes.address('made')}/").text


def change(double: Emulator) -> None:
    """Change something in each part that a snapshot has."""
    (made,) = (one for one in act(double, "ListTools")["Tools"] if one["Name"] == "made")
    act(double, "UpdateTool", ToolId=made["ToolId"], Description="changed")
    act(double, "CreateTool", Name="new", ToolType="CodeEnv")
    double.mcp.delete("service")
    double.mcp.new_key("far", "second")
    double.mcp.create("service", f"{double.url}/mcp")
    double.runtimes.update("made", environment={"SAYS": "second"})
    double.runtimes.create("new", command=[sys.executable, "-c", "1"], directory=".")
    say(double, "two")
    http.patch(f"{double.url}{SESSIONS}/s", json={"stateDelta": {"a": [2], "user:u": 3}})
    artifact(double, "f", {"text": "third"})
    artifact(double, "other", {"text": "other"})
    double.clock.advance(hours=1)
    double.faults.clear()


def works(double: Emulator) -> Any:
    """Call a tool of the application behind the service."""
    access = double.mcp.record("service")["mcpServers"]["service"]
    headers = {**access["headers"], "accept": "application/json, text/event-stream"}
    call = {"name": "double_it", "arguments": {"number": 21}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    opened = http.post(
        access["httpUrl"],
        headers=headers,
        json={
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
    )
    headers["mcp-session-id"] = opened.headers.get("mcp-session-id", "")
    answer = http.post(access["httpUrl"], headers=headers, json=body).text
    data = next(line[6:] for line in answer.splitlines() if line.startswith("data: "))
    return json.loads(data)["result"]["structuredContent"]["result"]


def test_a_runtime_that_was_deleted_comes_back_with_its_versions(
    double: Emulator, program: Mapping[str, Any]
) -> None:
    """The version in force as well; one that has not changed keeps its instances."""
    double.runtimes.create("made", **program)
    double.runtimes.update("made", environment={"SAYS": "second"})
    double.runtimes.release("made", 1)
    first = http.get(f"{double.runtimes.address('made')}/").text
    snapshot = double.snapshot()
    double.restore(snapshot)
    unchanged = http.get(f"{double.runtimes.address('made')}/").text
    double.runtimes.delete("made")
    double.restore(snapshot)
    again = http.get(f"{double.runtimes.address('made')}/").text

    assert first == unchanged != again
    assert again.endswith(" first")
    assert [1, 2] == [one.number for one in double.runtimes.versions("made")]


def test_what_a_snapshot_returned_to_is_in_the_state(
    tmp_path: Path, program: Mapping[str, Any]
) -> None:
    """After a restart the double is as the snapshot was."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with Emulator(state=url) as double:
        fill(double, program)
        snapshot = double.snapshot()
        change(double)
        double.restore(snapshot)
        before, known_before = deeply(double), known(double)
    with Emulator(state=url) as double:
        assert before[2:4] == deeply(double)[2:4]
        assert known_before["tools"] == known(double)["tools"]
        assert ["far"] == known(double)["mcp"]


def test_faults_come_back_with_their_counts(double: Emulator) -> None:
    """The second call is still the second."""
    double.faults.arm("fail", "ping", nth=2, status=503)
    http.get(f"{double.url}/ping")
    snapshot = double.snapshot()
    statuses = []
    for _ in range(2):
        statuses.append(http.get(f"{double.url}/ping").status_code)
        double.restore(snapshot)

    assert [503, 503] == statuses


def test_a_double_returns_to_a_snapshot_over_http(double: Emulator) -> None:
    """As other processes do it; the parts that it has are in the answer."""
    address = f"{double.url}/_emulator/snapshots"
    taken = http.post(address)
    double.clock.advance(minutes=1)
    restored = http.post(f"{address}/{taken.json()['id']}/restore")
    unknown = http.post(f"{address}/none/restore")

    assert (201, 200, 404) == (taken.status_code, restored.status_code, unknown.status_code)
    assert {"tools", "mcp", "runtimes", "agent_sessions", "clock", "faults"} == set(
        taken.json()["parts"]
    )
    assert "has no snapshot" in unknown.json()["error"]["message"]
    assert 0 == double.clock.offset.total_seconds()
