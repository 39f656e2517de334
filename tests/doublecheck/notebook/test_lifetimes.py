"""Processes that a notebook starts end with its kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from tests.doublecheck.notebook.kernels import TIMEOUT_S, NotebookKernel, notebook_kernel

pytestmark = pytest.mark.once

BEGIN = """
import doublecheck
platform = doublecheck.connect()
awaited = await doublecheck.connect_async(platform.url)
await awaited.ping()
platform.run_code("import subprocess; subprocess.Popen(['sleep', '600'])")
import os
os.getpid()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there a killed process takes all along")
def test_processes_end_with_a_restarted_or_killed_kernel(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as written, notebook_kernel(stderr=written) as notebook:
        started = _start(notebook)
        notebook.restart()
        assert [] == _alive(started)

        started = _start(notebook)
        psutil.Process(started[0].ppid()).kill()
        assert [] == _alive(started)

    lines = [line for line in log.read_text().splitlines() if "[IPKernelApp]" not in line]
    assert [] == lines


def _start(notebook: NotebookKernel) -> list[psutil.Process]:
    """Start a double with a session in a notebook and return the new processes."""
    ran = notebook.run(BEGIN)
    assert (None, "") == (ran.error, ran.stderr)
    children = psutil.Process(int(ran.text)).children(recursive=True)
    assert "sleep" in [process.name() for process in children]
    return children


def _alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that are still alive after the timeout."""
    return list(psutil.wait_procs(processes, timeout=TIMEOUT_S)[1])
