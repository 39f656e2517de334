from __future__ import annotations

import os
import subprocess
import sys
import time
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
from agentdouble.processes.usage import Process
from agentdouble.sandbox.watch import Watch, Watched
from tests.agentdouble.calling import has_gone, http, run, text

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
    double._call(double._instances.destroy_overgrown())


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


@pytest.mark.parametrize("limit", [8 * MIB, 1024 * MIB], ids=["limited", "not limited"])
@pytest.mark.parametrize("how", FILLERS)
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


@pytest.mark.parametrize("limit", [MIB, 8 * MIB])
def test_a_file_over_the_limit_is_an_error_of_the_code(limit: int) -> None:
    """It is told at once, and lives on."""
    with Emulator(workspace_limit=limit) as double:
        inner = run(double, f"len(open('f', 'wb').write(bytes({2 * MIB})) * 'x')")
        after = text(double, "import os; print(os.path.getsize('f'))")

    assert ("error" if limit == MIB else "ok") == inner["data"]["status"]
    assert (f"{MIB // 8 * 7}\n" if limit == MIB else f"{2 * MIB}\n") == after


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


def test_memory_that_processes_share_counts_once() -> None:
    """Forks that look at their parent's memory have none of their own."""
    with Emulator(memory_limit=1536 * MIB) as double:
        said = text(double, SHARING, "sharing")
        look(double)
        reasons = reasons_of(double)

    assert ("all\n", {}) == (said, reasons)


def test_what_a_session_has_left_is_seen_while_nothing_runs() -> None:
    """A thread goes on after its cell; its session ends with the reason."""
    code = (
        "import threading\n"
        "def fill():\n"
        "    for i in range(64): open(f'f{i}', 'wb').write(bytes(2**20))\n"
        "threading.Thread(target=fill).start()"
    )
    with Emulator(workspace_limit=32 * MIB) as double:
        pid = int(text(double, "import os; print(os.getpid())"))
        run(double, code)

        assert has_gone(pid, timeout_s=30)
        listed: dict[str, Any] = {"sessions": [None]}
        while listed["sessions"]:
            listed = http.get(f"{double.url}/_emulator/sessions").json()

    assert ["killed: its files grew over 32 MiB"] == [one["reason"] for one in listed["ended"]]


@pytest.fixture
def process() -> Any:
    """A process that does nothing."""
    started = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield started
    started.communicate(b"\n")


def test_directories_deeper_than_linux_can_name_end_a_session(
    tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    """What lies in them could not be counted."""
    watch = Watch(memory=1 << 40, files=1 << 40)
    session = Watched("s", (process.pid,), (tmp_path,))
    place = os.open(tmp_path, os.O_RDONLY)
    seen = [watch.look([session])]
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=place)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)

    seen.append(Watch(memory=1 << 40, files=1 << 40).look([session]))

    reason = "killed: its directories are deeper than their files can be counted"
    assert [{}, {"s": reason}] == seen


def test_a_session_that_is_slow_to_look_at_rests_and_no_other_pays_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is passed over for some looks and seen then; another is seen before."""
    # what a look takes by itself: whatever else this machine does makes no session slow
    monkeypatch.setattr("agentdouble.sandbox.watch.time", SimpleNamespace(perf_counter=thread_time))
    limit = 256 * MIB
    watch = Watch(memory=2**40, files=limit)
    slow, quick = (Watched(name, (os.getpid(),), (tmp_path / name,)) for name in ("slow", "quick"))
    for one in (slow, quick):
        one.directories[0].mkdir()
    for number in range(40_000):
        (tmp_path / "slow" / str(number)).touch()

    def look() -> Any:
        busy_until = time.process_time() + 0.02  # files of who does nothing are seldom counted
        while time.process_time() < busy_until:
            pass
        return watch.look([slow, quick])

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


def test_a_tree_has_whatever_descends_from_its_roots() -> None:
    """Not what is beside them; roots that have ended are left out."""
    table = {pid: Process(pid, parent, 0.0, 1) for pid, parent in [(2, 1), (3, 2), (4, 3), (5, 1)]}

    assert {2, 3, 4} == {process.pid for process in usage.tree([2, 9], table)}
