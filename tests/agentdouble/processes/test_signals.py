"""Signals reach the intended process, and never a group, the init or every process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from agentdouble.processes.fork_server import processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pidfds and /proc are Linux's")
IN_A_PROCESS_NAMESPACE = """
import os, sys
from agentdouble.processes.fork_server import linux, processes
user = linux.CLONE_NEWUSER if os.geteuid() else 0
linux.unshare(user | linux.CLONE_NEWPID)
if os.fork() == 0:
    print(processes.kill_children(int(sys.argv[1])))
    sys.exit()
os.wait()
"""


@pytest.mark.parametrize("pid", [1, 0, -1, -2])
@pytest.mark.parametrize("send", [processes.send, processes.send_to_group])
def test_groups_init_and_all_processes_are_never_signalled(
    send: Callable[[int, int], None], pid: int
) -> None:
    """Signal 0 keeps the test harmless if the guard is missing."""
    with pytest.raises(ProcessLookupError, match=f"{pid} is not the pid of a single process"):
        send(pid, 0)


def test_a_reused_pid_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        with pytest.raises(ProcessLookupError, match="has ended"):
            processes.send(process.pid, signal.SIGKILL, lambda: False)
        assert process.poll() is None

        processes.send(process.pid, signal.SIGKILL, lambda: True)

        assert -signal.SIGKILL == process.wait(30)


def test_pids_of_another_namespace_kill_no_child() -> None:
    """Its /proc is still that of the tests, whose process has a child."""
    command = [sys.executable, "-c", IN_A_PROCESS_NAMESPACE, str(os.getpid())]

    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    if "PermissionError" in printed.stderr:
        pytest.skip("this machine lets this user make no process namespace")
    assert ("[]\n", "") == (printed.stdout, printed.stderr)
