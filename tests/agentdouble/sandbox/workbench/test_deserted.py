"""Commands and code whose caller disconnects while waiting."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    DataPlane,
    data_plane,
    exec_bash,
    has_gone,
    home_of,
    http,
    pid_outside,
    pids_of,
    signed,
    text,
)

pytestmark = pytest.mark.once

RUNS = "echo $BASHPID > pid; echo > begun; exec sleep 600"


@pytest.fixture
def plane(double: Emulator) -> DataPlane:
    """The data plane of a session that can tell when a command has begun."""
    text(double, "import os; os.mkfifo('begun')")
    return data_plane(double)


def desert(double: Emulator, request: httpx.Request) -> int:
    """Send a request and close the socket once its command has begun.

    Return the pid on this machine of the process whose id the command wrote.
    """
    home, neighbour_pid = home_of(double, "s1"), pids_of(double)[0]
    with socket.create_connection((request.url.host, request.url.port or 80)) as caller:
        head = [f"{request.method} {request.url.raw_path.decode()} HTTP/1.1"]
        head += [f"{name}: {value}" for name, value in request.headers.items()]
        caller.sendall("\r\n".join([*head, "", ""]).encode() + request.read())
        (home / "begun").read_text()  # to its end, or who writes it would be ended by SIGPIPE
        return pid_outside(int((home / "pid").read_text()), neighbour_pid)


def on_plane(double: Emulator, plane: DataPlane, path: str, **body: Any) -> int:
    """Disconnect from a running operation of the data plane."""
    request = http.build_request("POST", plane.url + path, params=plane.query, json=body)
    return desert(double, request)


def on_control_plane(double: Emulator, command: str) -> int:
    """Disconnect from a running ExecBash."""
    body = {
        "ToolId": double.tool_id,
        "UserSessionId": "s1",
        "OperationType": "ExecBash",
        "OperationPayload": json.dumps({"command": command}),
    }
    call = signed(double, body)
    request = http.build_request(
        call.method, call.url, headers=dict(call.headers), content=call.body
    )
    return desert(double, request)


@pytest.mark.parametrize(
    ("path", "named"), [("/v1/bash/exec", "session_id"), ("/v1/shell/exec", "id")]
)
def test_a_command_is_interrupted_if_its_caller_disconnects(
    double: Emulator, plane: DataPlane, path: str, named: str
) -> None:
    """Its session keeps its state and is free at once."""
    plane.data(path, command="x=42", **{named: "b"})

    pid = on_plane(double, plane, path, command=f"({RUNS})", **{named: "b"})

    assert has_gone(pid, timeout_s=30)
    data = plane.data(path, command="echo $x", **{named: "b"})
    assert "42\n" == data.get("stdout", data.get("output"))


@pytest.mark.slow
def test_a_command_that_ignores_the_interrupt_is_killed(double: Emulator, plane: DataPlane) -> None:
    """Its session keeps its state."""
    plane.bash("x=42")

    ignores = f"(trap '' INT; {RUNS})"
    pid = on_plane(double, plane, "/v1/bash/exec", command=ignores, session_id="b")

    assert "42\n" == plane.bash("echo $x")["stdout"]
    assert has_gone(pid, timeout_s=30)


def test_exec_bash_is_interrupted_if_its_caller_disconnects(
    double: Emulator, plane: DataPlane
) -> None:
    """The session's bash keeps its state."""
    exec_bash(double, "x=42")

    pid = on_control_plane(double, f"({RUNS})")

    assert has_gone(pid, timeout_s=30)
    assert "42\n" == exec_bash(double, "echo $x")["data"]["stdout"]


@pytest.mark.parametrize("session", [{}, {"session_id": "one"}], ids=["its own", "a further"])
def test_data_plane_code_is_interrupted_if_its_caller_disconnects(
    double: Emulator, plane: DataPlane, session: dict[str, str]
) -> None:
    """Its kernel keeps its state."""
    plane.data("/v1/jupyter/execute", code="x = 42", **session)
    code = "open('pid', 'w').write('1'); open('begun', 'w').close()\nwhile True: pass"
    on_plane(double, plane, "/v1/jupyter/execute", code=code, **session)

    data = plane.data("/v1/jupyter/execute", code="x", timeout=10, **session)
    assert ["42"] == [output["data"]["text/plain"] for output in data["outputs"]]
