"""What a cold start costs: the first request of a runtime against its application by itself.

    python -m pytest -s tests/benchmarks/bench_runtimes.py -o python_files='bench_*.py' \
        -o python_functions='bench_*'

The application is a SimpleApp, started as its runtime starts it but by nobody else, and asked
until it answers. The rounds of the two take turns, so that a load on the machine meets both.
"""

from __future__ import annotations

import http.client
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from agentdouble import Emulator
from agentdouble.runtimes.command_line import HOSTING
from agentdouble.runtimes.ports import HOST, free_port

ROUNDS = 12
MOST_MS = 50.0
APPLICATIONS = Path(__file__).parents[1] / "agentdouble" / "runtimes" / "applications"
TARGET = "simple:app"


def by_itself_ms() -> float:
    """Return how long the application takes to its first answer."""
    port = free_port()
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, str(HOSTING), TARGET],
        cwd=APPLICATIONS,
        env={"PATH": os.environ["PATH"], "PORT": str(port)},
        stderr=subprocess.DEVNULL,
    ) as process:
        while not answers(f"{HOST}:{port}", "/ping"):
            time.sleep(0.001)
        took = time.perf_counter() - began
        process.terminate()
    return took * 1000


def through_ms(double: Emulator) -> float:
    """Return how long the first request of a new runtime takes."""
    double.runtimes.create("cold", directory=APPLICATIONS, application=TARGET)
    netloc = urlsplit(double.url).netloc
    began = time.perf_counter()
    assert answers(netloc, "/runtimes/cold/ping")
    took = time.perf_counter() - began
    double.runtimes.delete("cold")
    return took * 1000


def answers(netloc: str, path: str) -> bool:
    connection = http.client.HTTPConnection(netloc)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except ConnectionError:
        return False
    finally:
        connection.close()


def bench_a_cold_start_costs_little_more_than_the_applications_own() -> None:
    """The quickest and the median of each; the first round of a double warms up."""
    with Emulator() as double:
        first = through_ms(double)
        pairs = [(by_itself_ms(), through_ms(double)) for _ in range(ROUNDS)]

    own, through = ([pair[side] for pair in pairs] for side in (0, 1))
    medians = statistics.median(own), statistics.median(through)
    print(f"\nby itself: {min(own):.0f} ms, median {medians[0]:.0f} ms")
    print(f"through the gateway: {min(through):.0f} ms, median {medians[1]:.0f} ms")
    print(f"the first of a double: {first:.0f} ms")
    assert min(through) - min(own) <= MOST_MS
