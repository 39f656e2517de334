from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import DataPlane, act, data_plane

pytestmark = [pytest.mark.once, pytest.mark.smoke]

NUMBERS = itertools.count()


@pytest.fixture
def plane(shared: Emulator) -> Iterator[DataPlane]:
    """The data plane of a session used by one test only."""
    plane = data_plane(shared, f"shell-{next(NUMBERS)}")
    yield plane
    act(shared, "DeleteSession", SessionId=plane.query["faasInstanceName"])


def shell(plane: DataPlane, command: str, **fields: Any) -> dict[str, Any]:
    data: dict[str, Any] = plane.data("/v1/shell/exec", command=command, **{"id": "s", **fields})
    return data


def test_a_command_returns_its_output(plane: DataPlane) -> None:
    """It has stdout and stderr in order, the exit code and the prompt line."""
    output = "out\nerr\n"

    data = shell(plane, "echo out; echo err >&2; (exit 3)")

    command = "echo out; echo err >&2; (exit 3)"
    assert {
        "session_id": "s",
        "command": command,
        "status": "completed",
        "output": output,
        "console": [{"ps1": "gem@agentdouble:/home/gem $", "command": command, "output": output}],
        "exit_code": 3,
    } == data


@pytest.mark.needs("files")
def test_a_shell_keeps_its_state(plane: DataPlane) -> None:
    """Other shells have their own."""
    shell(plane, "cd /tmp; x=1")

    assert "/tmp 1\n" == shell(plane, 'echo "$PWD $x"')["output"]
    assert "/home/gem \n" == shell(plane, 'echo "$PWD $x"', id="other")["output"]
    assert "/home/gem\n" == shell(plane, "pwd", exec_dir="/home/gem")["output"]


@pytest.mark.needs("files")
def test_a_missing_directory_is_ignored_unless_strict(plane: DataPlane) -> None:
    """The shell stays in place, or the command is refused."""
    assert "/home/gem\n" == shell(plane, "pwd", exec_dir="/none")["output"]
    assert "exec_dir '/none' is not a directory." == plane.refusal(
        "/v1/shell/exec", command="pwd", exec_dir="/none", strict=True
    )


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"timeout": 0.2}, "running"),
        ({"hard_timeout": 0.2}, "hard_timeout"),
    ],
    ids=str,
)
def test_timeouts_end_the_wait(plane: DataPlane, fields: dict[str, Any], status: str) -> None:
    """Only the hard timeout ends the command too."""
    data = shell(plane, "sleep 600", **fields)

    assert status == data["status"]
    assert (137 if status == "hard_timeout" else None) == data["exit_code"]


def test_long_output_is_truncated(plane: DataPlane) -> None:
    """At 30000 characters, unless disabled."""
    cut = shell(plane, "seq 1 20000")["output"]
    output = shell(plane, "seq 1 20000", truncate=False)["output"]

    assert ("19999\n20000\n", True) == (cut[-12:], "characters omitted" in cut)
    assert 108894 == len(output)


@pytest.mark.parametrize("command", ["exit 3", "if"])
def test_every_command_is_answered(plane: DataPlane, command: str) -> None:
    """This includes a command that ends its shell."""
    assert "completed" == shell(plane, command)["status"]
    assert "completed" == shell(plane, "true")["status"]


def test_an_empty_name_counts_as_absent(plane: DataPlane) -> None:
    """The platform's client sends "" for a new shell and for no directory."""
    done = [plane.data("/v1/shell/exec", id="", exec_dir="", command="pwd") for _ in range(2)]

    assert [0, 0] == [command["exit_code"] for command in done]
    assert 2 == len({command["session_id"] for command in done} - {""})


def test_unsupported_features_are_refused_by_name(plane: DataPlane) -> None:
    """501 for a route, 422 for a field."""
    refused = plane.post("/v1/shell/exec", command="true", no_change_timeout=1)

    assert 501 == plane.get("/v1/shell/view").status_code
    assert (422, True) == (refused.status_code, "no_change_timeout" in refused.text)
