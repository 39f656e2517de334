from __future__ import annotations

import glob
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from agentdouble import Emulator
from agentdouble.runtimes import instance
from tests.agentdouble.calling import has_gone
from tests.agentdouble.runtimes.asking import ask, asking_table, pids_outside

DEAF = ["sh", "-c", "trap '' TERM; python asking.py; true"]  # and so is what it starts
DETACH = "subprocess.Popen(['sleep', '300'], start_new_session=True).pid"
TREE = f"[os.getppid() or os.getpid(), os.getpid(), {DETACH}, {DETACH}]"
DOUBLE = """
import sys
from agentdouble import Emulator
with Emulator(runtimes=[{table!r}]) as double:
    from tests.agentdouble.runtimes.asking import pids_outside
    print(*pids_outside(double, "one", {tree!r}), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator() as double:
        yield double


def create(double: Emulator, directory: Path, **fields: object) -> None:
    table = asking_table("one", directory, **fields)
    double.runtimes.create(**table)


def test_runtime_that_ignores_sigterm_is_killed(
    double: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some seconds, with all its processes, detached ones included."""
    monkeypatch.setattr(instance.Instance.end, "__defaults__", (0.1,))
    create(double, tmp_path, command=DEAF)
    pids = pids_outside(double, "one", TREE)
    alive = [psutil.pid_exists(pid) for pid in pids]

    double.runtimes.delete("one")

    assert [True] * 4 == alive
    assert [True] * 4 == [has_gone(pid, timeout_s=0) for pid in pids]


def test_runtime_that_exits_on_sigterm_is_not_waited_for(double: Emulator, tmp_path: Path) -> None:
    """Its detached processes end and its files are removed."""
    create(double, tmp_path)
    _, *pids = pids_outside(double, "one", TREE)
    mark = f"mark-{pids[0]}"
    ask(double, "one", f"pathlib.Path.home().joinpath({mark!r}).write_text('')")
    before = time.monotonic()

    double.runtimes.delete("one")

    assert instance.STOP_TIMEOUT_S > time.monotonic() - before
    assert [True] * 3 == [has_gone(pid, timeout_s=0) for pid in pids]
    # pathlib's raises where another double's directory goes meanwhile
    assert [] == glob.glob(f"{tempfile.gettempdir()}/agentdouble-*/*/home/{mark}")  # noqa: PTH207


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the guardian")
def test_killing_the_double_leaves_no_runtime(tmp_path: Path) -> None:
    """The fork server's guardian ends runtimes and their detached processes."""
    code = DOUBLE.format(table=asking_table("one", tmp_path, command=DEAF), tree=TREE)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()

    assert [True] * 4 == [has_gone(pid, timeout_s=30) for pid in pids]
