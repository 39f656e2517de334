from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble import Emulator
from agentdouble.processes.fork_server import processes
from agentdouble.processes.fork_server.client import ForkServerClient
from tests.agentdouble.calling import (
    act,
    ended,
    has_gone,
    pid_of,
    pid_outside,
    pids_of,
    result,
    run,
    text,
)
from tests.agentdouble.processes.forking import forked_by, request_in, with_fork_server

GRANDCHILD = """
import subprocess
child = subprocess.run(
    ["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE, text=True
)
print(child.stdout)
"""
SERVER = """
import sys
from agentdouble import Emulator
from tests.agentdouble.processes.test_fork_server import family
with Emulator() as double:
    print(*family(double), flush=True)
    sys.stdin.read()
"""

# A helper that ends only after the member it has forked, but has already closed its pipe.
SLOW_HELPER = """
import os, select
from agentdouble.processes.fork_server import namespaces, processes

class SlowOs:
    def __getattr__(self, name):
        return getattr(os, name)

    def _exit(self, code):
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        *_, member = processes.children(os.getpid())
        ended = select.poll()
        ended.register(os.pidfd_open(member), select.POLLIN)
        ended.poll(30_000)
        os._exit(code)

processes.adopt_orphans()
namespaces.os = SlowOs()
process_namespaces = namespaces.ProcessNamespaces()
member = process_namespaces.fork({"processes": "own", "namespaces": "user", "home": "/home"})
if member == 0:
    os._exit(3)
(helper,) = process_namespaces.keepers - {process_namespaces.init_of("/home")}
os.waitpid(helper, 0)
_, status = os.waitpid(member, 0)
print(os.waitstatus_to_exitcode(status))
"""


def family(double: Emulator) -> tuple[int, int]:
    """Return a kernel and its detached child, by their pids on this machine."""
    grandchild = int(text(double, GRANDCHILD))
    (kernel,) = pids_of(double)
    return kernel, pid_outside(grandchild, kernel)


def fork_server_of(pid: int) -> psutil.Process:
    fork_server = psutil.Process(pid).parent()
    assert fork_server is not None
    assert "agentdouble.processes.fork_server.server" in fork_server.cmdline()
    return fork_server


def test_an_instance_whose_idle_kernel_dies_is_destroyed(double: Emulator) -> None:
    """The double gives the reason, and the next call gets a new instance."""
    before = result(double, "x = 1")["SessionId"]
    kernel = pid_of(double)

    processes.send(kernel, signal.SIGKILL)

    reason = "the kernel's process was killed by signal 9 (SIGKILL), while nothing ran"
    assert {"s1": reason} == ended(double)
    inner = run(double, "print('x' in globals())")
    assert ("False\n", False) == (
        inner["data"]["outputs"][0]["text"],
        inner["data"]["session_id"] == before,
    )


def test_detached_processes_end_with_their_session(double: Emulator) -> None:
    """Orphans in a new process session end too."""
    session_id = result(double, "1")["SessionId"]
    kernel, grandchild = family(double)
    alive = psutil.pid_exists(grandchild)

    act(double, "DeleteSession", SessionId=session_id)

    assert (True, True, True) == (
        alive,
        has_gone(kernel, timeout_s=0),
        has_gone(grandchild, timeout_s=0),
    )


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["double", "guardian", "fork server", "kernel"])
def test_detached_processes_end_when_anything_is_killed(victim: str) -> None:
    """After SIGKILL nothing of the session keeps running."""
    double = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert double.stdout is not None
    kernel, grandchild = map(int, double.stdout.readline().split())
    fork_server = fork_server_of(kernel)
    guardian = fork_server.ppid()
    victims = {
        "double": double.pid,
        "guardian": guardian,
        "fork server": fork_server.pid,
        "kernel": kernel,
    }
    of_sessions = {kernel, grandchild}
    if victim != "kernel":  # whose end leaves the other two
        of_sessions |= {guardian, fork_server.pid}
    alive = psutil.pid_exists(grandchild)

    processes.send(victims[victim], signal.SIGKILL)

    ended = {pid for pid in of_sessions if has_gone(pid, timeout_s=30)}
    double.communicate()
    assert (True, of_sessions) == (alive, ended)


def test_a_cancelled_fork_is_killed() -> None:
    """A start cancelled halfway leaves no kernel."""

    async def test(server: ForkServerClient, process: psutil.Process, directory: Path) -> None:
        given_up = asyncio.ensure_future(server.fork(request_in(directory, "given-up")))
        await asyncio.sleep(0)
        given_up.cancel()

        survivor = await server.fork(request_in(directory, "kept"))

        (fork_server,) = process.children()
        for child in forked_by(fork_server) - {psutil.Process(survivor.pid)}:
            assert await asyncio.to_thread(has_gone, child.pid, 30)
        assert given_up.cancelled()
        assert not survivor.exited.done()

    with_fork_server(test)


def test_sessions_start_after_the_process_that_makes_namespaces_was_killed(
    double: Emulator,
) -> None:
    """The fork server starts another one; sessions that live go on."""
    result(double, "x = 1")
    children = fork_server_of(pid_of(double)).children()
    (maker,) = (child for child in children if child.name() == "namespaces")
    processes.send(maker.pid, signal.SIGKILL)

    assert "2\n" == text(double, "print(1 + 1)", "another")
    assert "1\n" == text(double, "print(x)")


def test_forks_beyond_the_channel_s_capacity_wait() -> None:
    """Each is answered in order."""

    async def test(server: ForkServerClient, process: psutil.Process, directory: Path) -> None:
        requests = [request_in(directory, f"{i}", padding=60_000) for i in range(8)]

        forked = await asyncio.gather(*(server.fork(request) for request in requests))

        pids = [kernel.pid for kernel in forked]
        (fork_server,) = process.children()
        assert sorted(pids) == sorted(child.pid for child in forked_by(fork_server))
        assert 8 == len(set(pids))

    with_fork_server(test)


def test_a_member_that_ends_before_its_helper_is_waited_for() -> None:
    """Otherwise nobody would learn that a copy has ended."""
    command = [sys.executable, "-c", SLOW_HELPER]

    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    if "PermissionError" in printed.stderr:
        pytest.skip("this machine lets this user make no process namespace")
    assert ("3\n", "") == (printed.stdout, printed.stderr)


def test_a_request_that_is_too_large_keeps_no_descriptor_open() -> None:
    """It is refused before descriptors are copied for it."""

    async def ask(server: ForkServerClient, _process: psutil.Process, directory: Path) -> None:
        before = psutil.Process().num_fds()
        with pytest.raises(OSError, match="more than 256 KiB"):
            await server.fork(request_in(directory, "large", padding=1 << 20), 0)

        assert before == psutil.Process().num_fds()

    with_fork_server(ask, "commands")
