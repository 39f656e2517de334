"""Parts that a reset can keep."""

from __future__ import annotations

import base64
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
    """Put something into each part."""
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


def contents(double: Emulator) -> Mapping[str, Any]:
    """Return the contents of each part; the journal first, as reading the rest adds entries."""
    journal = double.journal.entries()
    tasks = http.get(f"{double.url}/tasks", headers=V1).json()["tasks"]
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return {
        "journal": ["noted"] * bool(journal),
        "tools": sorted(tool["Name"] for tool in act(double, "ListTools")["Tools"]),
        "mcp": [service.name for service in double.mcp.list()],
        "runtimes": list(double.runtimes.names),
        "agent_sessions": http.get(f"{double.url}{SESSIONS}").json(),
        "tasks": [task["id"] for task in tasks],
        "sessions": [session["UserSessionId"] for session in sessions],
        "session_snapshots": [
            snapshot["UserSessionId"]
            for snapshot in act(double, "ListSessionSnapshots", ToolId=double.tool_id)["Snapshots"]
        ],
        "clock": double.clock.offset.total_seconds(),
        "faults": [state.fault.kind for state in double.faults.states()],
    }


@pytest.mark.needs("files", "pid_namespace")
@pytest.mark.parametrize("part", [*PARTS, "faults"])
def test_each_part_can_be_kept(double: Emulator, program: Mapping[str, Any], part: str) -> None:
    """All other parts return to their initial state."""
    fill(double, program)
    before = contents(double)
    double.reset(keep=[part])

    assert before[part] != NOTHING[part]
    assert {**NOTHING, part: before[part]} == contents(double)


@pytest.mark.needs("files", "pid_namespace")
def test_a_reset_without_state_keeps_nothing(double: Emulator, program: Mapping[str, Any]) -> None:
    """keep="state" makes no difference."""
    for reset in (double.reset, lambda: double.reset(keep=["state"])):
        fill(double, program)
        reset()
        assert NOTHING == contents(double)


@pytest.mark.needs("files", "pid_namespace")
def test_a_reset_keeps_saved_state(tmp_path: Path, program: Mapping[str, Any]) -> None:
    """With an empty keep it removes that too, also after a restart."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with Emulator(state=url) as double:
        fill(double, program)
        before = contents(double)
        double.reset()
        after = contents(double)
    with Emulator(state=url) as double:
        restarted = contents(double)
        http.post(f"{double.url}/_emulator/reset", params={"keep": ""})
        emptied = contents(double)
    with Emulator(state=url) as double:
        again = contents(double)

    of_the_process = {"sessions": [], "journal": [], "faults": []}
    assert {**before, **of_the_process, "clock": 0.0} == after
    assert {**after, "mcp": ["far"]} == restarted  # an application ends with its process
    assert [NOTHING, NOTHING] == [emptied, again]


def test_an_unknown_part_is_refused(double: Emulator) -> None:
    """The error lists the valid parts, and nothing is reset."""
    double.clock.advance(minutes=1)
    answer = http.post(f"{double.url}/_emulator/reset", params={"keep": "tools,services"})

    with pytest.raises(PartError, match="cannot keep 'services'; it can keep faults, clock, "):
        double.reset(keep=["services"])
    assert (400, "BadRequest") == (answer.status_code, answer.json()["error"]["type"])
    assert 60 == double.clock.offset.total_seconds()


def change(double: Emulator) -> None:
    """Change something in each part of a snapshot."""
    (created,) = (tool for tool in act(double, "ListTools")["Tools"] if tool["Name"] == "made")
    act(double, "UpdateTool", ToolId=created["ToolId"], Description="changed")
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
