from __future__ import annotations

import sys
from typing import Any

import psutil
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    DataPlane,
    background,
    data_plane,
    exec_bash,
    has_gone,
    home_of,
    http,
    run,
    text,
)

pytestmark = pytest.mark.once

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workbenches")


def workbench_of(plane: DataPlane) -> psutil.Process:
    """Return the parent process of the session's bash."""
    bash = psutil.Process(plane.pid_outside(int(plane.bash("echo $$", "whose")["stdout"])))
    parent = bash.parent()
    assert parent is not None
    return parent


def stray_of(plane: DataPlane) -> int:
    """Start a detached process from bash and return its pid."""
    pid = plane.bash("setsid sleep 600 >/dev/null 2>&1 & echo $!")["stdout"]
    return plane.pid_outside(int(pid))


def test_a_workbench_starts_on_demand(double: Emulator) -> None:
    """A code-only session has none; a files-only session has no kernel."""
    run(double, "1", "code")
    exec_bash(double, ":", "files")
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]

    assert {"code": 1, "files": 1} == {s["UserSessionId"]: len(s["pids"]) for s in sessions}


def test_a_workbench_ends_with_its_session(double: Emulator) -> None:
    """So do detached processes of its terminals."""
    plane = data_plane(double)
    workbench = workbench_of(plane)
    stray = stray_of(plane)
    waiting = background(lambda: plane.post("/v1/bash/exec", command="sleep 600"))
    while "sleep 600" not in plane.get("/v1/bash/sessions").text:
        pass

    double.reset()

    assert not workbench.is_running()
    assert not psutil.pid_exists(stray)
    response = waiting.result(20)
    assert (410, True) == (response.status_code, "the double was reset" in response.text)


def test_a_dead_workbench_is_reported_and_replaced(double: Emulator) -> None:
    """Its terminals are lost, but files and code state are kept."""
    run(double, "x = 42")
    plane = data_plane(double)
    plane.bash("echo kept > file")
    workbench = workbench_of(plane)
    stray = stray_of(plane)
    waiting = background(lambda: plane.post("/v1/bash/exec", command="sleep 600"))
    while "sleep 600" not in plane.get("/v1/bash/sessions").text:
        pass

    workbench.kill()

    response = waiting.result(20)
    assert 502 == response.status_code
    assert (
        "The session's workbench has ended: killed by signal 9. Its terminals are lost, its "
        "files are kept, and the next call starts another workbench."
    ) == response.json()["message"]
    assert has_gone(stray, timeout_s=30)
    assert "kept\n" == plane.bash("cat file")["stdout"]
    assert "42\n" == text(double, "print(x)")


@pytest.mark.slow
@ON_LINUX
@pytest.mark.parametrize(
    "settings",
    [{}, {"isolation": "none"}, {"provisioner": "local-provisioner"}],
    ids=str,
)
def test_stopping_the_double_ends_the_workbench(settings: dict[str, Any]) -> None:
    """It does not matter how it was started."""
    with Emulator(pool_size=0, **settings) as double:
        plane = data_plane(double)
        workbench = workbench_of(plane).pid
        stray = stray_of(plane)

    assert not psutil.pid_exists(workbench)
    assert has_gone(stray, timeout_s=30)


@pytest.mark.needs("files")
def test_the_workbench_socket_is_hidden_from_the_session(double: Emulator) -> None:
    """A session could otherwise replace it and receive the double's calls."""
    plane = data_plane(double)
    plane.bash(":")
    socket = home_of(double, "s1").parent / "workbench.sock"

    listing = plane.bash(f"ls -d {socket} {socket.parent}/*", max_output_length=0)

    assert socket.is_socket()
    assert f"{socket}\n" not in listing["stdout"]
