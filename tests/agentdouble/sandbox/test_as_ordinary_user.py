"""Run the tests that depend on the user again as an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

if sys.platform != "linux" or os.geteuid() != 0:
    pytest.skip("only root becomes another user", allow_module_level=True)

from tests.agentdouble.processes.becoming import ORDINARY, REPOSITORY, as_user

pytestmark = pytest.mark.once
TESTS = (
    "tests/agentdouble/sandbox/test_kernel_snapshots.py::test_a_copy_is_a_full_kernel",
    "tests/agentdouble/sandbox/test_kernel_snapshots.py::test_copies_are_isolated_from_each_other",
)


@pytest.mark.needs("files", "pid_namespace")
@pytest.mark.slow
def test_it_passes_as_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, ORDINARY, ORDINARY)
        options = ("-q", "-n", "0", "-p", "no:cacheprovider", "--basetemp", f"{home}/base")
        done = subprocess.run(
            as_user(ORDINARY, "pytest", *options, *TESTS),
            cwd=REPOSITORY,
            env={**os.environ, "HOME": home},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
