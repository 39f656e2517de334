"""What a node costs: a front with one node beside a single double, alternating.

Both are in this process, keep everything in memory, isolate sessions as the machine offers it, have
two ready kernels and a journal, and log no requests. One caller signs requests over HTTP. The node
has a process of its own on this machine.

Run: python -m pytest tests/benchmarks/bench_nodes.py -s -o python_files='bench_*.py' \
    -o python_functions='bench_*'
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import closing

from agentdouble import Emulator
from tests.benchmarks.conftest import Caller, fresh

ROUNDS, CALLS, SESSIONS = 10, 50, 30
MOST_WARM, MOST_NEW = 1.25, 1.3  # ratios
MOST_CPU_S = 0.0015  # the front's processor time for a warm call


def _took_s(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def cpu_s(double: Emulator) -> float:
    """Return the processor time of a double's own thread."""
    return double._call(_thread_time())


async def _thread_time() -> float:
    return time.thread_time()


def bench_front_and_single() -> None:
    with (
        Emulator() as single,
        Emulator(nodes="local://1") as front,
        closing(Caller(single)) as of_single,
        closing(Caller(front)) as of_front,
    ):
        callers = {"single": of_single, "front": of_front}
        warm: dict[str, list[float]] = {name: [] for name in callers}
        new: dict[str, list[float]] = {name: [] for name in callers}
        used_s = dict.fromkeys(callers, 0.0)
        for _ in range(ROUNDS):
            for name, caller in callers.items():
                caller.run("1", "warm")  # a session whose first call is not measured
                began_s = cpu_s(caller.double)
                warm[name] += [_took_s(lambda c=caller: c.run("1", "warm")) for _ in range(CALLS)]
                used_s[name] += cpu_s(caller.double) - began_s
        for _ in range(SESSIONS):
            for name, caller in callers.items():
                time.sleep(0.15)  # the pool fills again
                new[name].append(_took_s(lambda c=caller: c.run("1", fresh())))
    ratios = [
        statistics.median(times["front"]) / statistics.median(times["single"])
        for times in (warm, new)
    ]
    front_s = used_s["front"] / len(warm["front"])
    print(
        f"\nwarm {ratios[0]:.2f}, new {ratios[1]:.2f}, front's CPU {front_s * 1000:.2f} ms a call"
    )

    assert ratios[0] <= MOST_WARM
    assert ratios[1] <= MOST_NEW
    assert front_s <= MOST_CPU_S
