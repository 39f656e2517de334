"""``agentdouble faults``: armed faults happen, and the output matches the routes' answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import background, http
from tests.agentdouble.cli.conftest import CommandLine


@pytest.fixture
def faults(double: Emulator, command_line: CommandLine) -> Any:
    """Run a command on a double in this process; return its output or its error."""
    command_line.environment.update(double.environment())

    def run(*words: str) -> str:
        done = command_line.run("faults", *words, "--url", double.url)
        assert (0, "") == (done.returncode, done.stderr) or (2, "", 1) == (
            done.returncode,
            done.stdout,
            done.stderr.count("\n"),
        )
        return done.stdout or done.stderr

    return run


def test_fault_is_armed_triggered_and_removed(double: Emulator, faults: Any) -> None:
    """By its fields; values are JSON or text."""
    fields = ("status=503", "nth=2", "message=not now", 'headers={"X-A": "1"}', "times=all")

    fault = faults("arm", "fail", "/ping", *fields)
    first, second = (http.get(f"{double.url}/ping") for _ in range(2))

    id_ = fault.partition(":")[0]
    assert fault.startswith(f"{id_}: fail /ping (nth=2, ")
    assert (200, 503) == (first.status_code, second.status_code)
    assert ("1", True) == (second.headers["x-a"], "not now" in second.text)
    assert f"{id_} │ fail /ping (nth=2, " in faults("list")
    (listed,) = json.loads(faults("list", "--json"))["faults"]
    assert http.get(f"{double.url}/_emulator/faults").json()["faults"] == [listed]
    assert (2, 1) == (listed["calls"], listed["fired"])
    assert f"{id_} is removed; it has happened 1 times.\n" == faults("remove", id_)
    assert 200 == http.get(f"{double.url}/ping").status_code


def test_held_call_is_released(double: Emulator, faults: Any) -> None:
    """A delay without a time holds its call."""
    armed = json.loads(faults("arm", '{"kind": "delay", "operation": "/ping"}', "--json"))
    request = background(lambda: http.get(f"{double.url}/ping").status_code)
    double.faults.wait(armed["id"], fired=1)

    assert not request.done()
    assert f"The calls that {armed['id']} holds go on.\n" == faults("release", armed["id"])
    assert 200 == request.result()
    faults("arm", "reset", "/ping")
    assert "2 faults are removed.\n" == faults("remove", "--all")
    assert () == double.faults.states()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("arm", "fial", "/ping"), "Did you mean 'fail'?"),
        (("arm", "fail", "/ping", "503"), "'503' is not NAME=VALUE."),
        (("arm", "delay", "/ping", "seconds=1e999"), "a value that is not JSON"),
        (("remove",), "Name a fault"),
        (("remove", "f99"), "There is no armed fault 'f99'"),
    ],
)
def test_errors_are_one_line(faults: Any, words: tuple[str, ...], says: str) -> None:
    """They say what to write instead."""
    assert says in faults(*words)
