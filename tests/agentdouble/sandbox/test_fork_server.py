from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble import Emulator
from agentdouble.sandbox.fork_server.client import ForkServer, ForkServerGoneError
from agentdouble.sandbox.fork_server.protocol import ForkRequest
from tests.agentdouble.calling import Begun, has_gone, http, result, run, text

PID = "import os; print(os.getpid())"
GRANDCHILD = """
import os, subprocess
child = subprocess.run(
    ["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE, text=True
)
print(os.getpid(), child.stdout)
"""
SERVER = f"""
import sys
from agentdouble import Emulator
from tests.agentdouble.calling import text
with Emulator() as double:
    print(*text(double, {GRANDCHILD!r}).split(), flush=True)
    sys.stdin.read()
"""


def ended(double: Emulator) -> dict[str, str]:
    """Return the reasons of the sessions that have ended, once none is left that lives."""
    listed: dict[str, Any] = {"sessions": [None]}
    while listed["sessions"]:
        listed = http.get(f"{double.url}/_emulator/sessions").json()
    return {one["UserSessionId"]: one["reason"] for one in listed["ended"]}


def fork_server_of(pid: int) -> psutil.Process:
    fork_server = psutil.Process(pid).parent()
    assert fork_server is not None
    assert "agentdouble.sandbox.fork_server.server" in fork_server.cmdline()
    return fork_server


def test_sessions_are_lost_with_their_fork_server() -> None:
    """Each ends with that reason, code that ran is answered, and the next call begins anew."""
    lost = "the kernel's process has ended with its fork server"
    before = set(psutil.Process().children())
    with Emulator() as double:
        first = result(double, "x = 1", "idle")
        kernel = int(text(double, PID, "idle"))
        running = Begun(double, "busy", "print('never')")
        old = fork_server_of(kernel)

        old.kill()
        inner = running.future.result(30)
        reasons = ended(double)
        after = result(double, "print('x' in globals())", "idle")
        new = fork_server_of(int(text(double, PID, "idle")))

        assert ("error", f"Code execution failed: {lost}; the session's context is lost") == (
            inner["data"]["status"],
            inner["message"],
        )
        assert {
            "idle": f"{lost}, while nothing ran",
            "busy": f"Code execution failed: {lost}; the session's context is lost",
        } == reasons
        assert has_gone(kernel, timeout_s=10)
        assert first["SessionId"] != after["SessionId"]
        assert '"text": "False\\n"' in after["Result"]
        assert old.pid != new.pid
        assert not psutil.pid_exists(old.pid)
    assert before == set(psutil.Process().children())


def test_an_instance_whose_kernel_dies_while_nothing_runs_is_destroyed(double: Emulator) -> None:
    """The double says why, and the next call gets a new one."""
    before = result(double, "x = 1")["SessionId"]
    kernel = int(text(double, PID))

    os.kill(kernel, signal.SIGKILL)

    how = "the kernel's process was killed by signal 9 (SIGKILL), while nothing ran"
    assert {"s1": how} == ended(double)
    inner = run(double, "print('x' in globals())")
    assert ("False\n", False) == (
        inner["data"]["outputs"][0]["text"],
        inner["data"]["session_id"] == before,
    )


def test_what_a_session_started_ends_with_it(double: Emulator) -> None:
    """A process in a session of its own, whose parent has ended, is gone with the instance."""
    session_id = result(double, "1")["SessionId"]
    kernel, grandchild = map(int, text(double, GRANDCHILD).split())
    alive = psutil.pid_exists(grandchild)

    response = http.delete(f"{double.url}/_emulator/sessions/{session_id}")

    assert {"SessionId": session_id, "state": "destroyed"} == response.json()
    assert (True, True, True) == (
        alive,
        has_gone(kernel, timeout_s=0),
        has_gone(grandchild, timeout_s=0),
    )


def test_what_a_session_started_ends_with_a_killed_double() -> None:
    """SIGKILL of the double's process: half a second later nothing of its sessions runs."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    kernel, grandchild = map(int, server.stdout.readline().split())
    fork_server = fork_server_of(kernel).pid
    alive = psutil.pid_exists(grandchild)

    server.kill()

    gone = [has_gone(pid, timeout_s=0.5) for pid in (kernel, grandchild, fork_server)]
    server.communicate()
    assert (True, [True, True, True]) == (alive, gone)


def with_fork_server(test: Callable[[ForkServer, psutil.Process, Path], Awaitable[None]]) -> None:
    """Run a test with a fork server, its process and a directory of its own."""

    async def run_test(directory: Path) -> None:
        before = set(psutil.Process().children())
        server = ForkServer()
        (process,) = set(psutil.Process().children()) - before
        try:
            await test(server, process, directory)
        finally:
            await server.stop()

    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        asyncio.run(run_test(Path(directory)))


def request_in(directory: Path, name: str, *, padding: int = 0) -> ForkRequest:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PADDING": " " * padding}
    return ForkRequest(str(directory / f"{name}.json"), str(directory), environment)


def test_a_fork_that_nobody_waits_for_any_more_is_killed() -> None:
    """A start that is given up while it is under way leaves no kernel."""

    async def test(server: ForkServer, process: psutil.Process, directory: Path) -> None:
        given_up = asyncio.ensure_future(server.fork(request_in(directory, "given-up")))
        await asyncio.sleep(0)
        given_up.cancel()

        kept = await server.fork(request_in(directory, "kept"))

        for child in set(process.children()) - {psutil.Process(kept.pid)}:
            assert await asyncio.to_thread(has_gone, child.pid, 10)
        assert given_up.cancelled()
        assert not kept.exited.done()

    with_fork_server(test)


def test_a_fork_server_that_has_just_died_says_so() -> None:
    """Who asks before anybody has noticed is told the same as who asks afterwards."""

    async def test(server: ForkServer, process: psutil.Process, directory: Path) -> None:
        await server.fork(request_in(directory, "one"))
        process.kill()
        assert has_gone(process.pid, timeout_s=10)  # the loop meanwhile hears nothing

        for name in ("two", "three"):
            with pytest.raises(ForkServerGoneError):
                await server.fork(request_in(directory, name))

    with_fork_server(test)


def test_more_forks_are_asked_for_than_the_channel_holds() -> None:
    """They wait until the server reads, and each is answered in its turn."""

    async def test(server: ForkServer, process: psutil.Process, directory: Path) -> None:
        requests = [request_in(directory, f"{i}", padding=60_000) for i in range(8)]

        forked = await asyncio.gather(*(server.fork(request) for request in requests))

        pids = [kernel.pid for kernel in forked]
        assert sorted(pids) == sorted(child.pid for child in process.children())
        assert 8 == len(set(pids))

    with_fork_server(test)
