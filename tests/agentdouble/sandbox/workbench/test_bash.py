from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from operator import not_
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    DataPlane,
    act,
    background,
    data_plane,
    eventually,
    http,
)

pytestmark = pytest.mark.once

NUMBERS = itertools.count()


@pytest.fixture
def plane(shared: Emulator) -> Iterator[DataPlane]:
    """The data plane of a session used by one test only."""
    plane = data_plane(shared, f"bash-{next(NUMBERS)}")
    yield plane
    act(shared, "DeleteSession", SessionId=plane.query["faasInstanceName"])


def listed(plane: DataPlane) -> dict[str, Any]:
    return {shell["session_id"]: shell for shell in plane.get("/v1/bash/sessions").json()["data"]}


def test_a_command_returns_its_output_and_exit_code(plane: DataPlane) -> None:
    """stdout and stderr are separate; a failed command is completed too (SBX-09)."""
    answer = plane.post("/v1/bash/exec", command="echo out; echo err >&2; (exit 3)").json()

    data = answer["data"]
    ids = {name: data.pop(name) for name in ("session_id", "command_id")}
    assert all(ids.values())
    assert {
        "success": True,
        "message": "Command completed with exit code 3",
        "data": {
            "command": "echo out; echo err >&2; (exit 3)",
            "status": "completed",
            "stdout": "out\n",
            "stderr": "err\n",
            "exit_code": 3,
            "offset": 4,
            "stderr_offset": 4,
        },
        "hint": None,
    } == answer


@pytest.mark.needs("files")
def test_a_session_keeps_its_state(plane: DataPlane) -> None:
    """It keeps directory, variables and functions, apart from other sessions."""
    plane.bash('mkdir -p deep && cd deep; x=1; say() { echo "said $1"; }')

    assert "/home/gem/deep 1\nsaid so\n" == plane.bash('echo "$PWD $x"; say so')["stdout"]
    assert "/home/gem \n" == plane.bash('echo "$PWD $x"', "other")["stdout"]


def test_a_session_without_a_name_is_new(plane: DataPlane) -> None:
    """The answer has its name."""
    first, two = (plane.data("/v1/bash/exec", command="echo $$") for _ in range(2))

    assert first["session_id"] != two["session_id"]
    assert first["stdout"] == plane.bash("echo $$", first["session_id"])["stdout"]


def test_variables_apply_to_one_command(plane: DataPlane) -> None:
    """Any value works; None unsets a variable for that command."""
    plane.bash("export KEPT='it stays'")

    env = {"A": 'it\'s "$KEPT"\n`x`', "KEPT": None}
    assert 'it\'s "$KEPT"\n`x`|' == plane.bash('printf "%s|$KEPT" "$A"', env=env)["stdout"]
    assert "|it stays" == plane.bash('printf "$A|$KEPT"')["stdout"]


@pytest.mark.needs("files")
def test_exec_dir_changes_the_directory_permanently(plane: DataPlane) -> None:
    first = plane.bash("pwd", exec_dir="/tmp")["stdout"]

    assert [first, first] == [plane.bash("pwd")["stdout"], plane.bash("pwd")["stdout"]]
    assert "exec_dir '/none' is not a directory." == plane.refusal(
        "/v1/bash/exec", command="pwd", exec_dir="/none"
    )


@pytest.mark.parametrize(
    ("command", "stdout", "code"),
    [
        ("cat <<END\n$((6 * 7))\nEND", "42\n", 0),
        ("if", "", 2),
        ("printf 'a\\xffb'", "a\ufffdb", 0),
        ("echo 'Grüße 🌍'", "Grüße 🌍\n", 0),
        ("kill -9 $BASHPID", "", 137),
        ("exit 7", "", 7),
        ("exec 3>&- 4>&- 5>&-; echo on", "on\n", 0),
    ],
)
def test_unusual_commands_work(plane: DataPlane, command: str, stdout: str, code: int) -> None:
    """The session can run the next command afterwards."""
    data = plane.bash(command)

    assert ("completed", stdout, code) == (data["status"], data["stdout"], data["exit_code"])
    assert "again\n" == plane.bash("echo again")["stdout"]


def test_a_timeout_ends_the_wait_but_not_the_command(plane: DataPlane) -> None:
    """The status is running, and later output is read by offset."""
    running = plane.bash("read line; echo got $line", timeout=0.2)
    plane.data("/v1/bash/write", session_id="b", input="a line\n")
    later = plane.data(
        "/v1/bash/output", session_id="b", offset=running["offset"], wait=True, wait_timeout=20
    )

    assert ("running", "", None) == (running["status"], running["stdout"], running["exit_code"])
    assert "got a line\n" == later["stdout"]


def test_an_async_command_is_answered_at_once(plane: DataPlane) -> None:
    """Results of all commands can be read by id."""
    command = plane.bash("read line; echo one; exit 0", async_mode=True)
    waiting = plane.bash("echo never", async_mode=True)
    plane.data("/v1/bash/write", session_id="b", command_id=command["command_id"], input="\n")
    read = {"session_id": "b", "wait": True, "wait_timeout": 20}
    first = plane.data("/v1/bash/output", command_id=command["command_id"], **read)
    while first["command"]["status"] == "running":
        first = plane.data("/v1/bash/output", command_id=command["command_id"], **read)
    second = plane.data("/v1/bash/output", command_id=waiting["command_id"], **read)

    assert ("running", "pending") == (command["status"], waiting["status"])
    assert ("one\n", "completed") == (first["stdout"], first["command"]["status"])
    assert ("", "killed") == (second["stdout"], second["command"]["status"])  # bash had ended


def test_commands_of_one_session_run_in_order(plane: DataPlane) -> None:
    """The second waits for the first."""
    first = plane.bash("read line; echo $line", async_mode=True)
    second = background(lambda: plane.bash("echo second"))
    while listed(plane)["b"]["command_count"] < 2:
        pass
    plane.data("/v1/bash/write", session_id="b", input="first\n")

    assert "second\n" == second.result(20)["stdout"]
    read = plane.data("/v1/bash/output", session_id="b", command_id=first["command_id"])
    assert "first\n" == read["stdout"]


@pytest.mark.needs("pgrep")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "is_kept"),
    [
        ("sleep 600", True),
        ("trap '' TERM INT; while :; do :; done", False),
    ],
)
def test_a_hard_timeout_ends_the_command(plane: DataPlane, command: str, is_kept: bool) -> None:
    """Its children end too; bash ends only if it is the command itself."""
    plane.bash("x=1")

    data = plane.bash(command, hard_timeout=1 if is_kept else 0.2)  # by then it has started that

    assert ("timed_out", 137) == (data["status"], data["exit_code"])
    assert f"{'1' if is_kept else ''}\n" == plane.bash("echo $x")["stdout"]
    eventually(lambda: plane.bash("pgrep -f 'sleep 60[0]' || true", "other")["stdout"], not_)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_running_command(plane: DataPlane, name: str) -> None:
    """Its status is killed, and bash goes on."""
    plane.bash("x=1")
    running = plane.bash("(echo started; exec sleep 600)", async_mode=True)
    read = {"session_id": "b", "command_id": running["command_id"]}
    eventually(lambda: plane.data("/v1/bash/output", **read)["stdout"], "started\n".__eq__)
    plane.data("/v1/bash/kill", session_id="b", signal=name)
    after = plane.bash("echo $x")

    assert "killed" == plane.data("/v1/bash/output", **read)["command"]["status"]
    assert "1\n" == after["stdout"]


def test_long_output_is_truncated_in_the_middle(plane: DataPlane) -> None:
    """Only on request; the end is always kept."""
    data = plane.bash("seq 1 100000", max_output_length=20)

    assert "1\n2\n3\n4\n5\n\n[... 588875 characters omitted ...]\n99\n100000\n" == data["stdout"]
    assert 588895 == len(plane.bash("seq 1 100000", max_output_length=0)["stdout"])


@pytest.mark.slow
def test_a_command_has_the_session_s_limits() -> None:
    """The memory limit of the kernel applies."""
    allocate = "python3 -c 'bytearray(900 << 20)'"
    with Emulator(memory_limit=512 << 20, pool_size=0) as double:
        data = data_plane(double).bash(allocate)

    assert 1 == data["exit_code"]
    assert "MemoryError" in data["stderr"]


def test_the_session_s_python_comes_first_in_path(plane: DataPlane) -> None:
    """A command can import the same modules as the session's code."""
    prefix = plane.bash("python3 -c 'import sys; print(sys.prefix)'")["stdout"]

    assert f"{sys.prefix}\n" == prefix


@pytest.mark.needs("files")
def test_a_session_is_created_listed_and_closed(plane: DataPlane) -> None:
    """It keeps its directory and disappears when closed."""
    session = plane.data("/v1/bash/sessions/create", session_id="mine", exec_dir="/tmp")
    plane.bash("cd /home/gem; true", "mine")
    during = listed(plane)["mine"]
    plane.data("/v1/bash/sessions/mine/close")

    assert ("mine", "ready", "/tmp", None, 0) == tuple(
        session[name]
        for name in ("session_id", "status", "working_dir", "current_command", "command_count")
    )
    assert ("/home/gem", 1) == (during["working_dir"], during["command_count"])
    assert "mine" not in listed(plane)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("exec", {}, "command"),
        ("exec", {"command": "x", "env": {"a b": "c"}}, "env"),
        ("kill", {"session_id": "b", "signal": "SIGSTOP"}, "signal"),
    ],
    ids=str,
)
def test_a_body_with_invalid_fields_is_refused(
    plane: DataPlane, path: str, body: dict[str, Any], field: str
) -> None:
    """The answer is 422 with the location, like FastAPI's."""
    response = plane.post(f"/v1/bash/{path}", **body)

    assert 422 == response.status_code
    assert ["body", field] == response.json()["detail"][0]["loc"][:2]


@pytest.mark.parametrize("content", [b"[]", b"{"])
def test_a_body_that_is_not_a_json_object_is_refused(plane: DataPlane, content: bytes) -> None:
    """Nothing runs, and the error says why."""
    response = http.post(f"{plane.url}/v1/bash/exec", params=plane.query, content=content)

    assert 422 == response.status_code, response.text


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("kill", {"session_id": "no"}, "There is no bash session 'no'."),
        (
            "write",
            {"session_id": "b", "input": ""},
            "No such command is running in the bash session 'b'.",
        ),
        (
            "output",
            {"session_id": "b", "command_id": "no"},
            "There is no command 'no' in the bash session 'b'.",
        ),
    ],
)
def test_an_unknown_session_or_command_is_named(
    plane: DataPlane, path: str, body: dict[str, Any], message: str
) -> None:
    """The operation fails."""
    plane.bash(":")

    assert message == plane.refusal(f"/v1/bash/{path}", **body)


@pytest.mark.slow
def test_a_hard_timeout_ends_a_fork_bomb(plane: DataPlane) -> None:
    """It stays within the process limit, and nothing remains."""
    if sys.platform != "linux":
        pytest.skip("only Linux limits the processes of a session")

    data = plane.bash("bomb() { bomb | bomb & }; bomb; sleep 600", hard_timeout=1)

    assert "timed_out" == data["status"]
    assert "calm\n" == plane.bash("echo calm", "after")["stdout"]
