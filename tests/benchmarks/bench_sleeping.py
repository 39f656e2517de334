"""Measure sessions that expire together and wake in random order, and print a table.

    python -m tests.benchmarks.bench_sleeping [--sessions 1000]

The double has a process of its own, and is called over HTTP with signatures, as clients do. Each
session has a variable, every tenth also a file. The last lines are those of a double that keeps
nothing of expired sessions. Sessions are isolated as the machine offers it, and no kernel is ready.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from agentdouble.processes.usage import busy_ns
from doublecheck import Platform
from tests.benchmarks.conftest import pss_mib
from tests.benchmarks.served import double
from tests.benchmarks.table import Row

AT_ONCE = 8  # callers that begin sessions
FILE_EVERY = 10
IDLE_S = 5.0
SAMPLE = 50  # sessions whose memory is measured
LIFETIME = {"minutes": 31}
LOOK = "import os; print(x, open('f').read() if os.path.exists('f') else '')"
_GIB = 1 << 30


def own_name(user_session_id: str | None) -> str:
    """Return the name of a session without those of the agent and the user."""
    return (user_session_id or "").rpartition("_")[2]


def begin(platform: Platform, count: int) -> list[int]:
    """Begin so many sessions and return the pids of their processes."""

    def one(number: int) -> None:
        file = "" if number % FILE_EVERY else f"; open('f', 'w').write('{number}')"
        platform.run_code(f"x = {number}{file}", session_id=f"s{number}")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, range(count)))
    return [
        pid
        for session in platform.sandboxes()
        if own_name(session.user_session_id) != "warm"
        for pid in session.pids
    ]


def expire(platform: Platform) -> str:
    """Let all sessions expire, and return how long it took until all had ended."""
    start = time.perf_counter()
    platform.clock.advance(**LIFETIME)
    return f"{(time.perf_counter() - start) * 1e3:.0f} ms"


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if psutil.pid_exists(pid)]


def sleeping(platform: Platform, count: int) -> Iterator[Row]:
    """Measure sessions that sleep and wake."""
    pids = begin(platform, count)
    yield Row(f"expiry of {count} sessions together", expire(platform))
    asleep = alive(pids)
    memory = statistics.median(
        pss_mib(pid) for pid in random.Random(1).sample(asleep, min(SAMPLE, len(asleep)))
    )
    yield Row("memory of a sleeping session (PSS)", f"{memory:.1f} MiB")
    before = sum(map(busy_ns, asleep))
    time.sleep(IDLE_S)
    used_ms = (sum(map(busy_ns, asleep)) - before) / 1e6
    yield Row(
        f"CPU of {len(asleep)} sleeping processes in {IDLE_S:.0f} s", f"{used_ms:.1f} ms", "0"
    )
    took_ms, wrong = wake(platform, count)
    p95 = statistics.quantiles(took_ms, n=20)[-1]
    yield Row("a wake: median, p95", f"{statistics.median(took_ms):.0f} ms, {p95:.0f} ms")
    yield Row("wrong states", str(wrong), "0")


def wake(platform: Platform, count: int) -> tuple[list[float], int]:
    """Wake all in random order; return the time of each, and how many have a wrong state."""
    snapshots = {own_name(it.user_session_id): it for it in platform.snapshots()}
    took_ms, right = [], 0
    for number in random.Random(7).sample(range(count), count):
        snapshot = snapshots.get(f"s{number}")
        if snapshot is None:
            continue
        sandbox = platform.sandbox(instance_id=snapshot.session_id)
        start = time.perf_counter()
        sandbox.resume(snapshot)
        took_ms.append((time.perf_counter() - start) * 1e3)
        wanted = f"{number} {'' if number % FILE_EVERY else number}\n"
        right += sandbox.run(LOOK).stdout == wanted
        sandbox.destroy()  # its snapshot keeps a process: with both for all, few machines go on
    return took_ms, count - right


def without(platform: Platform, count: int) -> Iterator[Row]:
    """Measure what is left where nothing is kept, beside one session that began before."""
    expire(platform)
    platform.run_code("1", session_id="warm")
    before = held()
    begin(platform, count)
    expire(platform)
    platform.run_code("1", session_id="warm")
    kept = [f"{now - then:+.0f}" for then, now in zip(before, held(), strict=True)]
    names = "processes, directories, MiB (PSS)"
    yield Row(f"without snapshots: {names} left of {count} sessions", ", ".join(kept))


def held() -> tuple[int, int, float]:
    """Return the processes, directories of sessions, and memory of the double, in MiB."""
    # there may be others, which a double before has left to this process
    main_process = next(
        it
        for it in psutil.Process().children()
        if it.status() != psutil.STATUS_ZOMBIE and "serve" in it.cmdline()
    )
    processes = [main_process, *main_process.children(recursive=True)]
    # the double keeps the file open that locks its directory
    locks = (Path(file.path) for file in main_process.open_files())
    root = next(path.parent for path in locks if path.name == "lock")
    directories = [path for path in root.iterdir() if path.is_dir()]
    return len(processes), len(directories), sum(pss_mib(process.pid) for process in processes)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    count = parser.parse_args().sessions
    print("| | measured | wanted |\n|---|---|---|")
    room = {"pool_size": 0, "max_instances": count + 100, "max_sleeping_sessions": count}
    with double(**room, sleeping_sessions_limit=256 * _GIB) as platform:
        for row in sleeping(platform, count):
            print(row, flush=True)
    with double(**{**room, "max_sleeping_sessions": 0}) as platform:
        for row in without(platform, count):
            print(row, flush=True)


if __name__ == "__main__":
    main()
