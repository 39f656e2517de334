"""A suite whose tests share a set-up: each with a copy of it, and each with its own.

    python -m tests.benchmarks.bench_prepared [--tests 200]

The set-up imports pandas, makes 200 MiB of data, and takes two seconds in all. Both suites run in a
pytest of their own, one after the other, with the double of the fixtures: in memory, isolated as
the machine offers it, with two ready kernels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETUP = """
import time; started = time.perf_counter()
import numpy, pandas
data = pandas.DataFrame(numpy.random.default_rng(0).random((6_553_600, 4)))
time.sleep(max(0, 2 - (time.perf_counter() - started)))
"""
COPIES = f'''
import doublecheck

@doublecheck.prepared_sandbox
def prepared(sandbox):
    sandbox.run("""{SETUP}""", check=True)
'''
ALONE = f'''
import pytest

@pytest.fixture
def prepared(platform_sandbox):
    platform_sandbox.run("""{SETUP}""", check=True)
    return platform_sandbox
'''
TESTS = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_each_changes_its_own(prepared, number):
    prepared.run(f"data.iloc[0, 0] = {number}", check=True)
    assert prepared.run("float(data.iloc[0, 0])").text == f"{number}.0"
"""


def took_s(fixture: str, count: int) -> float:
    """Run the suite with a form of the fixture and return its time, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_suite.py").write_text(fixture + TESTS.replace("{count}", str(count)))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=200)
    count = parser.parse_args().tests
    copies, alone = took_s(COPIES, count), took_s(ALONE, count)
    print(f"{count} tests: {copies:.0f} s with copies, {alone:.0f} s with a set-up each")


if __name__ == "__main__":
    main()
