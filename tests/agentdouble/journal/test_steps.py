"""What the journal notes of the time that a request takes: its steps, on a clock of their own."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.journal.entries import STEPS_LIMIT, Entry, current_entry, note_step
from tests.agentdouble.calling import Begun, background, eventually, exec_bash, http, run


def entries(double: Emulator) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = http.get(f"{double.url}/_emulator/journal").json()["entries"]
    return listed


def names(entry: dict[str, Any]) -> list[str]:
    return [step["name"] for step in entry["steps"]]


def test_the_first_code_of_a_session_starts_a_kernel(double: Emulator) -> None:
    """The steps follow each other within the request."""
    run(double, "1")
    run(double, "2")

    first, second = entries(double)
    assert ["turn", "kernel", "code"] == names(first)
    assert ["turn", "code"] == names(second)
    ends = [step["after_ms"] + step["duration_ms"] for step in first["steps"]]
    begins = [step["after_ms"] for step in first["steps"]]
    times = [time for pair in zip(begins, ends, strict=True) for time in pair]
    assert [0, *times, first["duration_ms"]] == sorted([0, *times, first["duration_ms"]])


def test_a_command_in_bash_is_a_step(double: Emulator) -> None:
    exec_bash(double, "true")
    exec_bash(double, "true")

    first, second = entries(double)
    assert ["workbench", "command"] == names(first)
    assert ["command"] == names(second)


def test_waiting_for_other_code_is_a_step_while_it_lasts(double: Emulator) -> None:
    """It has no duration until the other code has ended."""
    begun = Begun(double, "s1", "")
    second = background(lambda: run(double, "2"))

    waiting = eventually(lambda: entries(double)[-1], lambda entry: names(entry) == ["turn"])
    begun.go()
    begun.future.result(60)
    second.result(60)

    assert None is waiting["steps"][0]["duration_ms"]
    _, first, later = entries(double)
    waited = later["started_ms"] + later["steps"][0]["after_ms"] + later["steps"][0]["duration_ms"]
    code = next(step for step in first["steps"] if step["name"] == "code")
    assert waited >= first["started_ms"] + code["after_ms"] + code["duration_ms"]


def test_a_fault_that_delays_is_a_step(double: Emulator) -> None:
    double.faults.arm("delay", "GET /ping", seconds=0.02)
    http.get(f"{double.url}/ping")

    (entry,) = entries(double)
    (step,) = entry["steps"]
    assert "fault" == step["name"]
    assert 20 <= step["duration_ms"] <= entry["duration_ms"]


def test_time_passes_in_the_journal_while_the_platform_s_stands_still(double: Emulator) -> None:
    double.clock.freeze()
    for _ in range(2):
        http.get(f"{double.url}/ping")

    first, second = entries(double)
    assert first["at"] == second["at"]
    assert first["started_ms"] + first["duration_ms"] <= second["started_ms"]


@pytest.mark.smoke
def test_only_so_many_steps_are_kept(double: Emulator) -> None:
    """A slow stream pauses before each piece. A step that fails has ended, too."""
    entry = Entry(id=1, at=double.clock.now(), method="GET", url="/", request_head=())
    token = current_entry.set(entry)
    try:
        with pytest.raises(ValueError, match="wrong"), note_step("fault"):
            raise ValueError("wrong")
        for _ in range(STEPS_LIMIT):
            with note_step("fault"):
                pass
    finally:
        current_entry.reset(token)

    assert STEPS_LIMIT == len(entry.steps)
    assert all(step.ended is not None for step in entry.steps)
