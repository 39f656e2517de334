"""A suite of tests that share a set-up of 2 s: with a copy for each test, and without.

Run: python -m tests.benchmarks.bench_prepared_sandbox [TESTS]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = 200
SUITE = """
import doublecheck
import pytest

SET_UP = '''
import time
time.sleep(2)  # stands for imports and data
rows = [{"n": n} for n in range(100_000)]
'''


@doublecheck.prepared_sandbox
def prepared(sandbox):
    sandbox.run(SET_UP, check=True)


@pytest.fixture
def anew(platform_sandbox):
    platform_sandbox.run(SET_UP, check=True)
    return platform_sandbox


def use(sandbox):
    assert sandbox.run("len(rows)").text == "100000"
    sandbox.run("rows.clear()", check=True)


@pytest.mark.parametrize("test", range(%d))
def test_copy(prepared, test):
    use(prepared)


@pytest.mark.parametrize("test", range(%d))
def test_anew(anew, test):
    use(anew)
"""


def main(tests: int) -> None:
    """Print how long the suite takes in each way."""
    print("| set up | tests | seconds | a test, in ms |\n|---|---|---|---|")
    with TemporaryDirectory() as folder:
        (Path(folder) / "test_it.py").write_text(SUITE % (tests, tests))
        for name, told in (("copy", "once, a copy for each test"), ("anew", "for each test")):
            took_s = _timed(folder, f"test_{name}", tests)
            print(f"| {told} | {tests} | {took_s:.1f} | {took_s / tests * 1000:.0f} |", flush=True)


def _timed(folder: str, name: str, tests: int) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", name]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    took_s = time.perf_counter() - began
    assert f"{tests} passed" in done.stdout, done.stdout
    return took_s


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else TESTS)
