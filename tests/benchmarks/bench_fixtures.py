"""What the pytest plugin costs: tests that use it, and runs that do not.

Run: python -m pytest tests/benchmarks/bench_fixtures.py -o python_files='bench_*.py' \
    -o python_functions='bench_*'
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from doublecheck import Platform
from doublecheck.fixtures import PlatformSandbox

ROUNDS = 100
RUNS = 15

_UNUSED = "def test_nothing(): pass\n"
_HUNDRED = """
import pytest

@pytest.mark.parametrize("number", range(100))
def test_it(platform_sandbox, number):
    assert str(number) == platform_sandbox.run(f"{number}").text
"""


@pytest.mark.benchmark(group="reset between two tests")
def bench_reset_unused(benchmark: Any, platform: Platform) -> None:
    """After a test that made no session; less than 5 ms."""
    benchmark.pedantic(lambda: platform.reset(wait=False), rounds=ROUNDS)


@pytest.mark.benchmark(group="reset between two tests")
def bench_reset_with_a_session(benchmark: Any, platform: Platform) -> None:
    """After a test that ran code; less than 5 ms."""

    def setup() -> None:
        platform.reset()  # what has ended before is gone
        platform.run_code("1")

    benchmark.pedantic(lambda: platform.reset(wait=False), setup=setup, rounds=ROUNDS)


def bench_hundred_tests_with_a_session(tmp_path: Path) -> None:
    """Each with a sandbox of its own; less than 8 s, the start of the double included."""
    took = _run(tmp_path, _HUNDRED)

    print(f"100 tests with a session of their own: {took:.2f} s")
    assert took < 8


def bench_a_run_that_uses_nothing(tmp_path: Path) -> None:
    """The plugin adds less than 20 ms to it."""
    added = statistics.median(
        _run(tmp_path, _UNUSED) - _run(tmp_path, _UNUSED, "-p", "no:doublecheck")
        for _ in range(RUNS)
    )

    print(f"added to a run that uses nothing: {added * 1000:.1f} ms")
    assert added < 0.020


def _run(folder: Path, tests: str, *options: str) -> float:
    (folder / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    # without it each module would be compiled anew
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run([*command, "test_it.py"], cwd=folder, env=kept, check=True, capture_output=True)
    return time.perf_counter() - began


def bench_sandbox(benchmark: Any, platform_sandbox: PlatformSandbox) -> None:
    """A sandbox that is made and destroyed, as its fixture does."""

    def use() -> None:
        platform_sandbox.run("1")
        platform_sandbox.destroy()

    benchmark.pedantic(use, rounds=ROUNDS)
