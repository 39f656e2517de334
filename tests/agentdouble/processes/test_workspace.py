from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.processes import workspace
from agentdouble.processes.workspace import Workspaces
from tests.agentdouble.calling import has_gone, text

SERVER = """
import sys
from agentdouble import Emulator
from tests.agentdouble.calling import home_of, pids_of, text
with Emulator() as double:
    text(double, "1")
    print(*pids_of(double), home_of(double, "s1"), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test its own temporary directory to sweep."""
    with tempfile.TemporaryDirectory(prefix="t-") as short:  # socket paths end at 108 bytes
        monkeypatch.setenv("TMPDIR", short)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield


def roots() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"{workspace.PREFIX}*"))


def test_a_session_s_directories_are_private() -> None:
    """Other users of the machine cannot read them."""
    workspaces = Workspaces()
    space = workspaces.make()

    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (space.home, space.tmp, space.runs, space.make_run(), roots()[0])
    }

    assert {0o700} == modes
    workspaces.remove()
    assert [] == roots()


def test_a_session_s_directories_are_removed_with_it() -> None:
    """Other sessions keep theirs."""
    workspaces = Workspaces()
    first, two = workspaces.make(), workspaces.make()
    (first.home / "file").write_text("x")

    first.remove()

    assert (False, False, True) == (first.home.exists(), first.runs.exists(), two.home.exists())
    workspaces.remove()


def test_a_sweep_removes_abandoned_directories() -> None:
    """An unlocked directory belongs to a killed double."""
    dead = Path(tempfile.mkdtemp(prefix=workspace.PREFIX))
    (dead / "lock").touch()
    (dead / "1").mkdir()

    workspace.sweep()

    assert [] == roots()


@pytest.mark.slow
def test_a_killed_double_leaves_no_kernels() -> None:
    """After SIGKILL they end by themselves; the next double sweeps the files."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    pid, home = server.stdout.readline().split()

    server.kill()
    kernel_is_gone = has_gone(int(pid), timeout_s=30)
    server.communicate()
    left_over = Path(home).exists()
    with Emulator() as double:
        text(double, "print()")
        swept = not Path(home).exists()

    assert (True, True, True) == (kernel_is_gone, left_over, swept)
