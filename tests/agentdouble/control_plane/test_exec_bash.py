from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import Emulator, run_code
from tests.agentdouble.calling import call, error_of, exec_bash, sessions_of, text

pytestmark = pytest.mark.once


def body(double: Emulator, payload: Any, session: str = "s1") -> dict[str, Any]:
    return {
        "ToolId": double.tool_id,
        "UserSessionId": session,
        "OperationType": "ExecBash",
        "OperationPayload": payload if isinstance(payload, str) else json.dumps(payload),
    }


@pytest.mark.slow
def test_command_runs_in_the_session_s_sandbox(double: Emulator) -> None:
    """SBX-09: it sees the files of the session's code, and the answer has the public shape."""
    text(double, "open('from-code', 'w').write('code')")

    envelope = exec_bash(double, "cat from-code; ls /nowhere", "s1")

    data = envelope["data"]
    assert data.pop("command_id")
    assert "No such file or directory" in data.pop("stderr")
    assert data.pop("stderr_offset") > 0
    assert {
        "success": True,
        "message": "Command completed with exit code 2",
        "data": {
            "session_id": "default",
            "command": "cat from-code; ls /nowhere",
            "status": "completed",
            "exit_code": 2,
            "stdout": "code",
            "offset": 4,
        },
        "hint": None,
    } == envelope


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "output"), [("kept", "/tmp 1\n"), ("fresh", "/home/gem \n")])
def test_shell_is_kept_if_the_ledger_says_so(answer: str, output: str) -> None:
    """U-EXECBASH-STATE."""
    with Emulator(unknowns={"U-EXECBASH-STATE": answer}, pool_size=0) as double:
        exec_bash(double, "cd /tmp; x=1")

        assert output == exec_bash(double, 'echo "$PWD $x"')["data"]["stdout"]


@pytest.mark.slow
def test_command_continues_after_its_timeout(double: Emulator) -> None:
    """The next command gets a new shell and does not wait."""
    slow = exec_bash(double, "sleep 600", timeout=1)["data"]
    after = exec_bash(double, "echo on")["data"]

    assert ("running", None, "default") == (slow["status"], slow["exit_code"], slow["session_id"])
    assert ("on\n", "default-2") == (after["stdout"], after["session_id"])


@pytest.mark.slow
def test_command_options_take_effect(double: Emulator) -> None:
    """Directory, variables, the hard timeout and the output length."""
    fields: dict[str, Any] = {"exec_dir": "/tmp", "env": {"A": "b"}, "max_output_length": 8}

    data = exec_bash(double, 'echo "$PWD $A"; seq 100', **fields)["data"]
    killed = exec_bash(double, "sleep 600", hard_timeout=1)["data"]

    assert data["stdout"].startswith("/tmp\n[... ")
    assert ("timed_out", 137) == (killed["status"], killed["exit_code"])


@pytest.mark.needs("files")
def test_failed_operation_is_reported_in_the_result(double: Emulator) -> None:
    """The call itself succeeds."""
    assert {
        "success": False,
        "message": "exec_dir '/none' is not a directory.",
        "data": None,
        "hint": None,
    } == exec_bash(double, "pwd", exec_dir="/none")
    refused = exec_bash(double, ":", env={"a b": ""})
    assert "env: 'a b' is not a valid variable name" == refused["message"]


@pytest.mark.parametrize(
    ("payload", "code", "named"),
    [
        ({}, "MissingParameter", "OperationPayload.command"),
        ({"command": " \n"}, "InvalidParameter", "OperationPayload.command"),
        ({"command": "a\0b"}, "InvalidParameter", "NUL characters"),
        ({"command": "x" * (2 << 20)}, "InvalidParameter", "the limit is 1048576"),
        ({"command": "x", "timeout": 301}, "InvalidParameter", "larger than 300 seconds"),
        ({"command": "x", "env": {"A": 1}}, "InvalidParameter", "OperationPayload.env.A"),
        ("{", "InvalidParameter", "it is not valid JSON"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_payloads_are_refused_by_name(
    double: Emulator, payload: Any, code: str, named: str
) -> None:
    """No session is created."""
    error = error_of(call(double, body(double, payload)))

    assert (400, code) == (error["status"], error["Code"])
    assert named in error["Message"]
    assert 0 == len(sessions_of(double))


def test_run_code_runs_commands(double: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like real clients: the language bash or shell selects the operation ExecBash."""
    for name, value in double.environment().items():
        monkeypatch.setenv(name, value)

    result = json.loads(run_code("echo $((6 * 7))", "bash"))

    assert ("completed", "42\n") == (result["data"]["status"], result["data"]["stdout"])
