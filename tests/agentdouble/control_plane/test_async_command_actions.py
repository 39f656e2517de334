"""Commands that run on after the answer, as the platform's samples start and view them."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, eventually, exec_bash, refusal, result


@pytest.fixture
def session(double: Emulator) -> dict[str, str]:
    return {"ToolId": double.tool_id, "SessionId": result(double, "1")["SessionId"]}


def ended(double: Emulator, **task: str) -> dict[str, Any]:
    return eventually(
        lambda: act(double, "ViewAsyncCommand", **task), lambda it: it["Status"] != "Running"
    )


def test_a_command_runs_on_and_is_viewed(double: Emulator, session: dict[str, str]) -> None:
    """ExecBash answers meanwhile, from another bash."""
    exec_bash(double, "mkdir -p d")
    command = "pwd; until [ -e ../go ]; do sleep 0.02; done; echo err >&2"
    started = act(double, "AsyncExecCommand", **session, Command=command, ExecDir="/home/gem/d")
    task = {**session, "TaskId": started["TaskId"]}

    running = act(double, "ViewAsyncCommand", **task)
    exec_bash(double, "touch go")

    assert ("Running", {**task, "Status": "Running"}) == (running["Status"], started)
    assert {**task, "Status": "Succeeded", "Output": "/home/gem/d\nerr\n", "ExitCode": 0} == ended(
        double, **task
    )


def test_a_failed_command_has_its_exit_code(double: Emulator, session: dict[str, str]) -> None:
    task = act(double, "AsyncExecCommand", **session, Command="exit 3")["TaskId"]

    view = ended(double, **session, TaskId=task)

    assert ("Failed", 3) == (view["Status"], view["ExitCode"])


def test_an_unknown_task_is_unknown(double: Emulator, session: dict[str, str]) -> None:
    """So is one of another session; a command must not be empty."""
    other = {**session, "SessionId": result(double, "1", "other")["SessionId"]}
    task = act(double, "AsyncExecCommand", **session, Command="true")["TaskId"]

    views = [
        act(double, "ViewAsyncCommand", **session, TaskId="task-1"),
        act(double, "ViewAsyncCommand", **other, TaskId=task),
    ]

    assert ["Unknown", "Unknown"] == [view["Status"] for view in views]
    assert 400 == refusal(double, "AsyncExecCommand", **session, Command=" ")[0]


def test_a_command_ends_with_its_session(double: Emulator, session: dict[str, str]) -> None:
    act(double, "AsyncExecCommand", **session, Command="sleep 1000")

    act(double, "DeleteSession", **session)

    assert 404 == refusal(double, "ViewAsyncCommand", **session, TaskId="task-1")[0]
