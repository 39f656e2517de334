from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from time import thread_time
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble import Emulator
from agentdouble.processes import usage
from agentdouble.sandbox import watch as watching
from agentdouble.sandbox.watch import Watch, WatchedSession
from tests.agentdouble.calling import eventually, has_gone, http, instances_of, pid_of, run, text

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
    """Have the double look at its sessions now, besides the looks that it takes by itself."""
    double._call(instances_of(double).destroy_overgrown())


def look_at(watch: Watch, *sessions: WatchedSession) -> Mapping[str, str]:
    """Look once, as a double does: at those of the sessions that may have grown."""
    active = watch.active_sessions()
    return watch.check([one for one in sessions if one.name in active])


def reasons_of(double: Emulator) -> dict[str, str]:
    listed = http.get(f"{double.url}/_emulator/sessions").json()
    return {one["UserSessionId"]: one["reason"] for one in listed["ended"]}


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
    ("how", "limit"), [*((how, 8 * MIB) for how in FILLERS), ("many files", 1024 * MIB)]
)
def test_a_session_whose_files_grow_over_the_limit_is_ended(how: str, limit: int) -> None:
    """The code that runs is answered with the reason, its session is gone, others live on."""
    with Emulator(workspace_limit=limit) as double:
        text(double, "x = 1", "beside")
        home = Path(http.get(f"{double.url}/_emulator/sessions").json()["sessions"][0]["home"])
        inner = run(double, FILLERS[how] + FOR_EVER * (limit == 8 * MIB), "filler")
        look(double)
        beside = text(double, "print(x)", "beside")
        left = [path.name for path in home.parents[1].iterdir() if path.is_dir()]
        reasons = reasons_of(double)

    lost = "killed: its files grew over 8 MiB; the session's context is lost"
    assert "1\n" == beside
    if limit == 8 * MIB:
        assert f"Code execution failed: {lost}" == inner["message"]
        assert {"filler": "killed: its files grew over 8 MiB"} == reasons
        assert 4 > len(left)  # this one, and those that are ready
    else:
        assert ("ok", {}) == (inner["data"]["status"], reasons)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [MIB, 8 * MIB])
def test_a_file_over_the_limit_is_an_error_of_the_code(limit: int) -> None:
    """It is told at once, and lives on."""
    with Emulator(workspace_limit=limit) as double:
        inner = run(double, f"len(open('f', 'wb').write(bytes({2 * MIB})) * 'x')")
        after = text(double, "import os; print(os.path.getsize('f'))")

    assert ("error" if limit == MIB else "ok") == inner["data"]["status"]
    assert (f"{MIB // 8 * 7}\n" if limit == MIB else f"{2 * MIB}\n") == after


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1536 * MIB, 4096 * MIB], ids=["limited", "not limited"])
def test_a_session_whose_processes_together_take_too_much_memory_is_ended(limit: int) -> None:
    """None of them is over the limit itself."""
    with Emulator(memory_limit=limit) as double:
        inner = run(double, HOGS + FOR_EVER * (limit == 1536 * MIB), "hogs")
        look(double)
        reasons = reasons_of(double)
        (listed, hogs) = (http.get(f"{double.url}/_emulator/sessions").json()["sessions"], [])
        for pid in [pid for one in listed for pid in one["pids"]]:
            hogs += psutil.Process(pid).children()

    reason = "killed: its memory grew over 1536 MiB"
    expected = {"hogs": reason} if limit == 1536 * MIB else {}
    assert expected == reasons
    assert (0 if expected else 4) == len(hogs)
    assert inner["message"].startswith(f"Code execution failed: {reason}") == bool(expected)


@pytest.mark.slow
def test_memory_that_processes_share_counts_once() -> None:
    """Forks that look at their parent's memory have none of their own."""
    with Emulator(memory_limit=1536 * MIB) as double:
        said = text(double, SHARING, "sharing")
        look(double)
        reasons = reasons_of(double)

    assert ("all\n", {}) == (said, reasons)


@pytest.mark.slow
def test_what_a_session_has_left_is_seen_while_nothing_runs() -> None:
    """A thread goes on after its cell; its session ends with the reason."""
    code = (
        "import threading\n"
        "def fill():\n"
        "    for i in range(64): open(f'f{i}', 'wb').write(bytes(2**20))\n"
        "threading.Thread(target=fill).start()"
    )
    with Emulator(workspace_limit=32 * MIB) as double:
        pid = pid_of(double)
        run(double, code)

        assert has_gone(pid, timeout_s=30)
        listed: dict[str, Any] = {"sessions": [None]}
        while listed["sessions"]:
            listed = http.get(f"{double.url}/_emulator/sessions").json()

    assert ["killed: its files grew over 32 MiB"] == [one["reason"] for one in listed["ended"]]


@pytest.fixture
def process() -> Any:
    """A process that does nothing: it sleeps in the system, with all else behind it."""
    started = subprocess.Popen(["sleep", "1000000"])
    seen = psutil.Process(started.pid)
    while (seen.name(), seen.status()) != ("sleep", psutil.STATUS_SLEEPING):
        pass
    yield started
    started.kill()
    started.wait()


@pytest.mark.slow
def test_a_session_that_is_slow_to_look_at_rests_and_no_other_pays_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is passed over for some looks and seen then; another is seen before."""
    # what a look takes by itself: whatever else this machine does makes no session slow
    monkeypatch.setattr("agentdouble.sandbox.watch.time", SimpleNamespace(perf_counter=thread_time))
    limit = 256 * MIB
    watch = Watch(memory=2**40, files=limit)
    slow, quick = (
        WatchedSession(name, (os.getpid(),), (tmp_path / name,)) for name in ("slow", "quick")
    )
    for one in (slow, quick):
        one.directories[0].mkdir()
    for number in range(40_000):
        (tmp_path / "slow" / str(number)).touch()

    def look() -> Any:
        busy_until = time.process_time() + 0.02  # files of who does nothing are seldom counted
        while time.process_time() < busy_until:
            pass
        return look_at(watch, slow, quick)

    for one in (slow, quick):
        watch.mark_active(one.name)
    first = look()
    with (tmp_path / "slow" / "large").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, limit)
    second = look()
    with (tmp_path / "quick" / "large").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, limit + MIB)
    later = [look() for _ in range(25)]

    reason = "killed: its files grew over 256 MiB"
    first_told = [next(one for one in later if name in one) for name in ("quick", "slow")]
    assert [{}, {}, {"quick": reason}] == [first, second, first_told[0]]
    assert reason == first_told[1]["slow"]
    assert watch.pause_s < 5


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


@pytest.mark.parametrize("what", GROWING)
@pytest.mark.slow
@pytest.mark.parametrize("how", ["a child", "a grandchild of a process that has ended"])
def test_what_grows_in_a_session_that_was_idle_is_seen(
    how: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of its processes does it, long after its code and all looks at that."""
    monkeypatch.setattr(Watch, "_next_in_turn", lambda _: set())  # which would see it later
    code = HIDING[how].format(fork=HIDDEN, grow=repr(GROWING[what]))
    with Emulator(workspace_limit=8 * MIB, memory_limit=1536 * MIB, isolation="none") as double:
        run(double, code, "hidden")
        (session,) = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
        begin = os.open(Path(session["home"]) / "begin", os.O_WRONLY)  # when it is read
        settle(double)
        os.write(begin, b"x")
        os.close(begin)
        eventually(lambda: look(double) or reasons_of(double), bool)

        assert {"hidden": f"killed: {ENDS_WITH[what]}"} == reasons_of(double)


def settle(double: Emulator) -> None:
    """Look until every session is idle and was counted since it was busy."""
    counted = instances_of(double)._watch._counted

    def changed() -> list[int]:
        look(double)
        times = [one for times in counted.values() for one in times.items()]
        return [pid for pid, busy in times if usage.busy_ns(pid) != busy] if counted else [0]

    eventually(changed, lambda pids: not pids)


def test_sessions_that_do_nothing_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    """Of a thousand idle ones one is, in its turn; of the busy ones each."""
    # on a busy machine the busy one would rest: it takes long to look at
    monkeypatch.setattr(watching, "_rest_s", lambda _took_s: watching.INTERVAL_S)
    watch = Watch(memory=1 << 40, files=1 << 40)
    idle = [WatchedSession(f"idle{n}", (process.pid,), (tmp_path,)) for n in range(1000)]
    busy = WatchedSession("busy", (os.getpid(),), (tmp_path,))
    sessions = (*idle, busy)
    for one in sessions:
        watch.mark_active(one.name)
    while len({usage.busy_ns(process.pid) for _ in range(1000)}) > 1:  # it starts still
        pass
    for _ in range(3):  # at the second their processes are known, at the third their times
        look_at(watch, *sessions)

    counted: list[str] = []
    count = usage.files

    def noting(directories: Any, *args: Any) -> int:
        counted.append("")
        return count(directories, *args)

    monkeypatch.setattr(usage, "files", noting)
    seen = [(watch.active_sessions(), look_at(watch, *sessions)) for _ in range(4)]

    assert all("busy" in active and len(active) <= 2 for active, _ in seen)
    assert 8 >= len(counted)


def test_a_link_counts_once_and_leads_nowhere(tmp_path: Path) -> None:
    """Hard links are one file; a symbolic one is no way to the files of others."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").write_bytes(bytes(MIB))
    (inside / "file").write_bytes(bytes(MIB))
    os.link(inside / "file", inside / "again")
    (inside / "away").symlink_to(outside)

    counted = usage.files([str(inside)], (), 1 << 40)

    assert MIB <= counted < 2 * MIB
