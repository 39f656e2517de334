from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble import Emulator
from agentdouble.processes import usage
from agentdouble.processes.watch import Watch, Watched
from tests.agentdouble.calling import eventually, http, run, sessions_of, text

pytestmark = pytest.mark.once

MIB = 1024 * 1024
FOR_EVER = "\nwhile True: pass"
FORKING = """
import os, signal, warnings
warnings.simplefilter("ignore")  # of a fork in a process with threads, since 3.12
"""
HOGS = (
    FORKING
    + """
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        held = bytearray(b"x") * (500 << 20)
        signal.pause()
"""
)
SHARING = (
    FORKING
    + """
held = bytearray(b"x") * (600 << 20)
reading, writing = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        sum(held[::4096])
        os.write(writing, b"x")
        signal.pause()
for _ in range(4):
    os.read(reading, 1)
print("all", flush=True)
"""
)


def look(double: Emulator) -> None:
    """Make the double check its sessions now."""
    double._call(sessions_of(double).usage.destroy_overgrown())


def reasons_of(double: Emulator) -> dict[str, str]:
    listed = http.get(f"{double.url}/_emulator/sessions").json()
    return {session["UserSessionId"]: session["reason"] for session in listed["ended"]}


FILLERS = {
    "many files": "for i in range(16): open(f'f{i}', 'wb').write(bytes(2**20))",
    "in /tmp": "import tempfile\n"
    "for i in range(16): open(f'{tempfile.gettempdir()}/f{i}', 'wb').write(bytes(2**20))",
    "many directories": "import os\nfor i in range(2300): os.mkdir(f'd{i}')",
    "files without a name": "held = []\n"
    "for i in range(16):\n"
    "    held.append(open('f', 'wb'))\n"
    "    held[-1].write(bytes(2**20))\n"
    "    __import__('os').unlink('f')",
    "files in memory": "import os\n"
    "for i in range(16): os.write(os.memfd_create('f'), bytes(2**20))",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filler", "limit"), [*((filler, 8 * MIB) for filler in FILLERS), ("many files", 1024 * MIB)]
)
def test_a_session_over_the_file_limit_is_ended(filler: str, limit: int) -> None:
    """Running code gets the reason, and other sessions continue."""
    with Emulator(workspace_limit=limit) as double:
        text(double, "x = 1", "beside")
        home = Path(http.get(f"{double.url}/_emulator/sessions").json()["sessions"][0]["home"])
        inner = run(double, FILLERS[filler] + FOR_EVER * (limit == 8 * MIB), "filler")
        look(double)
        output = text(double, "print(x)", "beside")
        folders = [path.name for path in home.parents[1].iterdir() if path.is_dir()]
        reasons = reasons_of(double)

    lost = "killed: its files grew over 8 MiB; the session's context is lost"
    assert "1\n" == output
    if limit == 8 * MIB:
        assert f"Code execution failed: {lost}" == inner["message"]
        assert {"filler": "killed: its files grew over 8 MiB"} == reasons
        assert 4 > len(folders)  # this one, and those that are ready
    else:
        assert ("ok", {}) == (inner["data"]["status"], reasons)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [MIB, 8 * MIB])
def test_a_file_over_the_limit_fails_the_code(limit: int) -> None:
    """The error is immediate, and the session survives."""
    with Emulator(workspace_limit=limit) as double:
        inner = run(double, f"len(open('f', 'wb').write(bytes({2 * MIB})) * 'x')")
        after = text(double, "import os; print(os.path.getsize('f'))")

    assert ("error" if limit == MIB else "ok") == inner["data"]["status"]
    assert (f"{MIB // 8 * 7}\n" if limit == MIB else f"{2 * MIB}\n") == after


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1536 * MIB, 4096 * MIB], ids=["limited", "not limited"])
def test_a_session_over_the_memory_limit_is_ended(limit: int) -> None:
    """No single process exceeds the limit."""
    with Emulator(memory_limit=limit) as double:
        inner = run(double, HOGS + FOR_EVER * (limit == 1536 * MIB), "hogs")
        look(double)
        reasons = reasons_of(double)
        (listed, hogs) = (http.get(f"{double.url}/_emulator/sessions").json()["sessions"], [])
        for pid in [pid for session in listed for pid in session["pids"]]:
            hogs += psutil.Process(pid).children()

    reason = "killed: its memory grew over 1536 MiB"
    expected = {"hogs": reason} if limit == 1536 * MIB else {}
    assert expected == reasons
    assert (0 if expected else 4) == len(hogs)
    assert inner["message"].startswith(f"Code execution failed: {reason}") == bool(expected)


@pytest.mark.slow
def test_shared_memory_counts_once() -> None:
    """Forks that only read their parent's memory add nothing."""
    with Emulator(memory_limit=1536 * MIB) as double:
        output = text(double, SHARING, "sharing")
        look(double)
        reasons = reasons_of(double)

    assert ("all\n", {}) == (output, reasons)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for input."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as started:
        eventually(lambda: psutil.Process(started.pid).status(), psutil.STATUS_SLEEPING.__eq__)
        yield started


def test_a_process_that_has_ended_uses_no_memory(process: subprocess.Popen[bytes]) -> None:
    """Copies that end while a session is measured do not count at full size."""
    tree = usage.walk([process.pid])
    alive = usage.memory(tree, 0)

    process.kill()
    process.wait()

    assert (True, 0) == (alive > 0, usage.memory(tree, 0))


def test_a_new_session_that_does_nothing_is_measured_once(
    process: subprocess.Popen[bytes],
) -> None:
    """The next look finds that its process has used no more time."""
    watch = Watch()
    watch.mark_active("idle")
    first = watch.active()
    watch.check([Watched("idle", (process.pid,), 1024 * MIB, capped=True)])

    assert ({"idle"}, set()) == (first, watch.active())


@pytest.mark.parametrize("used", [False, True])
def test_a_single_idle_process_is_read_once_in_four_looks(
    used: bool, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless its session is used."""
    monkeypatch.setattr(Watch, "_next_in_turn", lambda _: set())
    watch = Watch()
    watch.check([Watched("idle", (process.pid,), 1024 * MIB, capped=True)])
    watch.active()
    before = usage.busy_ns(process.pid)
    assert process.stdin is not None
    process.stdin.write(b"x")
    process.stdin.flush()
    eventually(lambda: usage.busy_ns(process.pid), before.__lt__)
    if used:
        watch.mark_active("idle")
    looks = [watch.active() for _ in range(3)]

    assert [*[{"idle"} if used else set()] * 2, {"idle"}] == looks


def test_use_ends_the_rest_of_an_idle_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that grows is ended while it runs, however long the session was idle before."""
    monkeypatch.setattr("agentdouble.processes.watch._TURN", sys.maxsize)  # only use ends its rest
    with Emulator(workspace_limit=8 * MIB) as double:
        text(double, "1", "filler")
        eventually(lambda: look(double) or sessions_of(double).usage._watch._quiet, bool)
        inner = run(double, FILLERS["many files"] + FOR_EVER, "filler")

    assert inner["message"].endswith("its files grew over 8 MiB; the session's context is lost")


HIDING = {
    "a child": "{fork}\n    later({grow})",
    "a grandchild of a process that has ended": "{fork}\n    later("
    "'if os.fork(): os._exit(0)', {grow})",
}
HIDDEN = """
import os, signal, warnings
warnings.simplefilter("ignore")  # of a fork in a process with threads, since 3.12

def later(*steps):
    reading = os.open("begin", os.O_RDONLY)  # until somebody writes to it
    os.read(reading, 1)
    for step in steps:
        exec(step)
    signal.pause()

os.mkfifo("begin")
if os.fork() == 0:"""
GROWING = {
    "files": "for i in range(16): open(f'f{i}', 'wb').write(bytes(2**20))",
    "memory": "for _ in range(4):\n"
    "    if os.fork() == 0: held = bytearray(b'x') * (500 << 20); signal.pause()",
}
ENDS_WITH = {"files": "its files grew over 8 MiB", "memory": "its memory grew over 1536 MiB"}


@pytest.mark.parametrize("reason", GROWING)
@pytest.mark.slow
@pytest.mark.parametrize("action", ["a child", "a grandchild of a process that has ended"])
def test_growth_in_an_idle_session_is_noticed(
    action: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any of its processes counts, long after its code has ended."""
    monkeypatch.setattr(Watch, "_next_in_turn", lambda _: set())  # which would see it later
    code = HIDING[action].format(fork=HIDDEN, grow=repr(GROWING[reason]))
    with Emulator(workspace_limit=8 * MIB, memory_limit=1536 * MIB, isolation="none") as double:
        run(double, code, "hidden")
        (session,) = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
        begin = os.open(Path(session["home"]) / "begin", os.O_WRONLY)  # when it is read
        os.write(begin, b"x")
        os.close(begin)
        eventually(lambda: look(double) or reasons_of(double), bool)

        assert {"hidden": f"killed: {ENDS_WITH[reason]}"} == reasons_of(double)
