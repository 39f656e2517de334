"""Results of each kind that are failures."""

from __future__ import annotations

from typing import Any

import pytest

from doublecheck.errors import ResultError
from doublecheck.results import (
    A2aAnswer,
    AgentEvent,
    AgentEvents,
    BashResult,
    CodeResult,
    McpResult,
    Output,
    StreamEvent,
)
from doublecheck.values.executions import CanFail

RAISED = Output("error", ename="E", evalue="no", traceback=("\x1b[31mE\x1b[0m", "no"))


def code(success: bool, status: str, *outputs: Output) -> CodeResult:
    return CodeResult(success, status, "It took too long.", outputs, 1, "s-1", "x")


def bash(exit_code: int | None) -> BashResult:
    return BashResult("hard_timeout", exit_code, "", "no\n", "s-1", "x")


def answer(state: str | None) -> A2aAnswer:
    return A2aAnswer("task", "t", "c", state, ("no",), {})


def event(error: str | None, **raw: Any) -> AgentEvent:
    return AgentEvent("model", (), error=error, raw=raw)


@pytest.mark.parametrize(
    "result",
    [
        *(code(True, "ok"), bash(0), answer("completed"), answer("input-required"), answer(None)),
        *(StreamEvent("no"), event(None), AgentEvents(), AgentEvents([event(None)])),
        McpResult(False, None, ()),
    ],
    ids=repr,
)
def test_a_successful_result_returns_itself(result: CanFail) -> None:
    """This allows chained calls."""
    assert result is result.raise_for_error()


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (code(False, "error", RAISED), ("E", "no", "E\nno", "The code raised E: no:\nE\nno")),
        (
            code(False, "timeout"),
            ("timeout", "It took too long.", "", "The code failed: timeout: It took too long."),
        ),
        (bash(3), ("exit code 3", "no", "", "The command failed: exit code 3: no.")),
        (bash(None), ("hard_timeout", "no", "", "The command failed: hard_timeout: no.")),
        (answer("failed"), ("failed", "no", "", "The task ended: failed: no.")),
        (answer("rejected"), ("rejected", "no", "", "The task ended: rejected: no.")),
        (StreamEvent('{"error": "no"}'), ("", "no", "", "The application failed: no.")),
        (event("no", errorCode="E"), ("E", "no", "", "The agent failed: E: no.")),
        (
            McpResult(True, None, ({"type": "text", "text": "no"},)),
            ("", "no", "", "The tool failed: no."),
        ),
        (McpResult(True, None, ()), ("", "", "", "The tool failed.")),
    ],
    ids=repr,
)
def test_a_failure_raises(result: CanFail, expected: tuple[str, ...]) -> None:
    """The exception has the name, the message and the traceback of the result."""
    with pytest.raises(ResultError) as raised:
        result.raise_for_error()

    error = raised.value
    assert expected == (error.ename, error.evalue, error.traceback, str(error))
    assert result is error.result


def test_events_raise_the_first_failure() -> None:
    """Later failures follow from it."""
    failed = event("first")
    with pytest.raises(ResultError) as raised:
        AgentEvents([event(None), failed, event("second")]).raise_for_error()

    assert failed is raised.value.result
