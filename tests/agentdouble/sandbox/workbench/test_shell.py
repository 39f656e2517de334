from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.sandbox.workbench import output_files
from agentdouble.sandbox.workbench.bash_sessions import MAX_SESSIONS
from tests.agentdouble.calling import DataPlane, act, background, data_plane

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
        "full_output_file_path": None,
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


@pytest.mark.parametrize("times", [{}, {"seconds": 60, "max_wait_seconds": 60}], ids=str)
def test_a_running_command_is_waited_for(plane: DataPlane, times: dict[str, int]) -> None:
    """The wait ends with its time or with the command, and answers like exec."""
    shell(plane, "mkfifo go")
    command = "echo begun; cat go; (exit 3)"
    started = shell(plane, command, id="", timeout=0, hard_timeout=60, strict=True)
    name = started["session_id"]
    passed = plane.data("/v1/shell/wait", id=name, seconds=60, max_wait_seconds=0)
    waiting = background(lambda: plane.data("/v1/shell/wait", id=name, **times))
    shell(plane, "echo ended > go")

    assert ("running", None) == (started["status"], started["exit_code"])
    assert ("running", None) == (passed["status"], passed["exit_code"])
    assert {
        **started,
        "status": "completed",
        "output": "begun\nended\n",
        "console": [{**started["console"][0], "output": "begun\nended\n"}],
        "exit_code": 3,
    } == waiting.result()


def test_wait_tells_of_a_command_that_was_killed(plane: DataPlane) -> None:
    """It has reached its hard timeout."""
    shell(plane, "sleep 600", timeout=0, hard_timeout=0.2)
    data = plane.data("/v1/shell/wait", id="s")

    assert ("hard_timeout", 137) == (data["status"], data["exit_code"])


def test_wait_finds_a_shell_that_its_command_has_ended(plane: DataPlane) -> None:
    """This holds although other shells were started meanwhile."""
    name = shell(plane, "echo last; exit 3", id="")["session_id"]
    shell(plane, "true", id="")
    data = plane.data("/v1/shell/wait", id=name)

    assert ("completed", 3, "last\n") == (data["status"], data["exit_code"], data["output"])
    assert "There is no shell 'none'." == plane.refusal("/v1/shell/wait", id="none")


def test_commands_without_a_shell_never_run_out_of_shells(plane: DataPlane) -> None:
    """Their idle shells are ended, but neither named ones nor what they have started."""
    shell(plane, "kept=1", id="named")
    pid = shell(plane, "sleep 600 >/dev/null 2>&1 & echo $!", id="")["output"].strip()
    done = [shell(plane, "true", id="")["status"] for _ in range(MAX_SESSIONS + 2)]

    assert {"completed"} == set(done)
    assert "1\n" == shell(plane, "echo $kept", id="named")["output"]
    assert "sleep\n" == shell(plane, f"ps -o comm= -p {pid}")["output"]


def whole(plane: DataPlane, data: dict[str, Any]) -> bytes:
    """Download the whole output of a command."""
    path = data["full_output_file_path"]
    answer = plane.get("/v1/file/download", path=path, change_policy="abort")
    assert 200 == answer.status_code, answer.text
    return answer.content


@pytest.mark.parametrize("size", [30_001, 12_000_000])
def test_long_output_is_kept_in_a_file(plane: DataPlane, size: int) -> None:
    """It can be downloaded."""
    data = shell(plane, f"yes 0123456 | head -c {size}", id="")
    waited = plane.data("/v1/shell/wait", id=data["session_id"])

    assert data == waited
    assert len(data["output"]) < 31_000
    assert (b"0123456\n" * (size // 8 + 1))[:size] == whole(plane, data)


def test_the_file_of_long_output_grows_with_it(plane: DataPlane) -> None:
    """The file of a running command has what was put out so far."""
    shell(plane, "mkfifo go")
    shell(plane, "yes | head -c 40000; cat go", id="long", timeout=0)
    data: dict[str, Any] = {"full_output_file_path": None}
    while data["full_output_file_path"] is None or len(whole(plane, data)) < 40_000:
        data = plane.data("/v1/shell/wait", id="long", seconds=0)
    waiting = background(lambda: plane.data("/v1/shell/wait", id="long"))
    shell(plane, "echo end > go")

    assert data["full_output_file_path"] == waiting.result()["full_output_file_path"]
    assert b"y\n" * 20_000 + b"end\n" == whole(plane, data)


@pytest.mark.needs("files")
def test_files_of_long_output_are_bounded(plane: DataPlane) -> None:
    """Their size is limited, and the oldest are removed."""
    flood = shell(plane, "yes | head -c 20000000")
    later = [shell(plane, "yes | head -c 40000") for _ in range(output_files.MOST_FILES + 2)]
    listed = plane.data("/v1/file/list", path=output_files.DIRECTORY)["files"]
    kept = [data["full_output_file_path"] for data in later[2:]]

    assert 200 == plane.get("/v1/file/download", path=kept[0]).status_code
    assert sorted(kept) == sorted(file["path"] for file in listed)
    assert flood["full_output_file_path"] not in kept


def test_output_beyond_the_limit_of_a_file_is_dropped(plane: DataPlane) -> None:
    """The file says so at its end."""
    content = whole(plane, shell(plane, "yes | head -c 20000000"))

    assert b"y\n" * (output_files.FILE_LIMIT // 2) == content[: output_files.FILE_LIMIT]
    assert b"was not kept" in content[output_files.FILE_LIMIT :]
    assert len(content) < output_files.FILE_LIMIT + 100


@pytest.mark.parametrize("obstacle", ["touch /tmp/shell-output", "ln -s /none /tmp/shell-output"])
@pytest.mark.needs("files")
def test_long_output_needs_no_file(plane: DataPlane, obstacle: str) -> None:
    """It is cut if the session has no room for its file."""
    data = shell(plane, f"rm -rf /tmp/shell-output; {obstacle}; yes | head -c 40000")

    assert (0, None) == (data["exit_code"], data["full_output_file_path"])


@pytest.mark.needs("files")
def test_links_in_the_directory_are_resolved_unless_preserved(plane: DataPlane) -> None:
    shell(plane, "mkdir -p real; ln -sfn real link")
    at = {"id": "", "exec_dir": "/home/gem/link"}

    assert "/home/gem/real\n" == shell(plane, "pwd", **at)["output"]
    assert "/home/gem/link\n" == shell(plane, "pwd", **at, preserve_symlinks=True)["output"]


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
    assert 501 == plane.get("/v1/shell/view").status_code
    assert 501 == plane.get("/v1/shell/terminal").status_code
    for path, field in (("exec", "no_change_timeout"), ("exec", "colour"), ("wait", "colour")):
        refused = plane.post(f"/v1/shell/{path}", id="s", command="true", **{field: 1})
        assert 422 == refused.status_code
        assert field in refused.text
