"""Measure copies, starts, calls and memory, beside other servers, and print the table.

    python -m tests.benchmarks [--json FILE] [--sessions 450] [--copies 100] [--cache FOLDER]

CPU is what all processes of the machine use, so nothing else should run; the head of the table says
what did; only idle CPU is that of the double's processes alone. Times are medians. The double has a
process of its own, and is called over HTTP with signatures, as clients do.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import itertools
import json
import os
import platform as machine
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import start_new_async_kernel

import agentdouble
from agentdouble.processes.usage import busy_ns
from doublecheck import Platform, connect
from tests.benchmarks import peers
from tests.benchmarks.conftest import pss_mib
from tests.benchmarks.table import Row

PREPARED = """
import numpy, pandas
data = pandas.DataFrame(numpy.random.default_rng(0).random((6_553_600, 4)))
open('data.txt', 'w').write('x' * 1000)
"""
LOOK, SEEN = "print(len(data), len(open('data.txt').read()))", "6553600 1000\n"
AT_ONCE = 4  # callers
IDLE_S = 10.0
_names = (f"s{number}" for number in itertools.count())


@contextmanager
def double(**settings: Any) -> Iterator[Platform]:
    """Serve a double in a process of its own and yield a client."""
    environment = {f"AGENTDOUBLE_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "agentdouble", "serve", "--port", "0", "--no-console"]
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = next(word for line in process.stdout for word in line.split() if "://" in word)
        with connect(url.rpartition("/")[0]) as platform:
            platform.run_code("1", session_id="warm")
            yield platform
    finally:
        process.terminate()
        process.communicate()


def busy_s() -> float:
    """Return the CPU time that the machine has used, in seconds."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def timed(act: Callable[[], Any], times: int) -> tuple[float, float]:
    """Return the median time and the mean CPU of a call, in milliseconds."""
    took, before = [], busy_s()
    for _ in range(times):
        start = time.perf_counter()
        act()
        took.append(time.perf_counter() - start)
    return statistics.median(took) * 1e3, (busy_s() - before) / times * 1e3


def copies(platform: Platform, count: int) -> Iterator[Row]:
    """Measure snapshots, copies and the return to a snapshot, of a session with 200 MiB of data."""
    source = platform.sandbox(session_id="copied")
    source.run(PREPARED, check=True)
    snapshot = source.snapshot()

    def copy() -> None:
        sandbox = platform.sandbox_from(snapshot)
        assert SEEN == sandbox.run(LOOK).stdout
        sandbox.destroy()

    took_ms, cpu_ms = timed(copy, count)
    yield Row(
        "copy with 200 MiB of data: CPU to the first answer and the end",
        f"{cpu_ms:.0f} ms",
        "25 ms",
    )
    yield Row(f"{count} copies, one after another", f"{took_ms:.0f} ms each", "40 ms")
    start = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: copy(), range(count)))
    yield Row(f"{count} copies, {AT_ONCE} at once", f"{time.perf_counter() - start:.1f} s", "2.5 s")

    def roll_back() -> None:
        source.resume(snapshot)
        assert SEEN == source.run(LOOK).stdout

    yield Row(
        "return to a snapshot, with the first answer", f"{timed(roll_back, 20)[0]:.0f} ms", "40 ms"
    )
    taken = [timed(source.snapshot, 1)[0] for _ in range(15)]
    yield Row("a snapshot: the first three, the last three of 15",
              f"{statistics.median(taken[:3]):.0f}, {statistics.median(taken[-3:]):.0f} ms", "50 ms")  # fmt: skip


def starts(platform: Platform, count: int) -> Iterator[Row]:
    """Measure new sessions, alone and several at once, while their number grows."""

    def first_answer(name: str = "") -> None:
        platform.run_code("1 + 1", session_id=name or next(_names))

    took_ms, _ = timed(first_answer, 40)
    yield Row("a new session: its first answer", f"{took_ms:.0f} ms", "30 ms")
    rates, cpu = [], []
    for _ in range(3):
        names = [next(_names) for _ in range(count // 3)]
        start, before = time.perf_counter(), busy_s()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(first_answer, names))
        rates.append(len(names) / (time.perf_counter() - start))
        cpu.append((busy_s() - before) / len(names) * 1e3)
    yield Row(
        f"starts a second, {AT_ONCE} at once: each third of {count}", _listed(rates), "60, 60, 55"
    )
    yield Row("CPU of a start", f"{_listed(cpu)} ms", "33 ms")
    pids = [pid for session in platform.sandboxes() for pid in session.pids]
    memory = statistics.median(pss_mib(pid) for pid in pids)
    yield Row(f"memory of a session, {len(pids)} alive (PSS)", f"{memory:.1f} MiB", "10 MiB")
    processes = [child.pid for child in psutil.Process().children(recursive=True)]
    before, start = sum(map(busy_ns, processes)), time.perf_counter()
    time.sleep(IDLE_S)
    share = (sum(map(busy_ns, processes)) - before) / 1e9 / (time.perf_counter() - start)
    yield Row(f"idle CPU with {len(pids)} sessions", f"{share:.1%} of a core", "1 %")


def calls(platform: Platform) -> Iterator[Row]:
    """Measure a warm call beside the floor: jupyter_client on a stock kernel, without HTTP."""
    loop = asyncio.new_event_loop()
    manager, client = loop.run_until_complete(start_new_async_kernel(stderr=subprocess.DEVNULL))

    def raw() -> None:
        loop.run_until_complete(client.execute_interactive("1 + 1", output_hook=lambda _: None))

    def warm() -> None:
        platform.run_code("1 + 1", session_id="warm")

    rounds = [(timed(warm, 50), timed(raw, 50)) for _ in range(10)]  # in turns
    client.stop_channels()
    loop.run_until_complete(manager.shutdown_kernel(now=True))
    loop.close()
    ours, floor = (
        statistics.median(took for took, _ in side) for side in zip(*rounds, strict=True)
    )
    cpu = statistics.median(cpu for (_, cpu), _ in rounds)
    yield Row("warm call, with the client", f"{ours:.1f} ms, CPU {cpu:.1f} ms")
    yield Row("warm call, beside jupyter_client on a stock kernel", f"{ours / floor:.2f}", "1.10")


def first_answers() -> Iterator[Row]:
    """Measure a ready kernel beside a stock one, which jupyter_client starts."""

    async def stock() -> None:
        manager, client = await start_new_async_kernel(stderr=subprocess.DEVNULL)
        await client.execute_interactive("1 + 1", output_hook=lambda _: None)
        client.stop_channels()
        await manager.shutdown_kernel(now=True)

    floor, _ = timed(lambda: asyncio.run(stock()), 5)
    with double(pool_size=4) as platform:
        ours = []
        for _ in range(20):
            ours.append(timed(lambda: platform.run_code("1 + 1", session_id=next(_names)), 1)[0])
            time.sleep(0.3)  # until another kernel is ready
    share = statistics.median(ours) / floor
    yield Row("a new session with a ready kernel, beside a stock start", f"{share:.3f}")


def sandboxes(options: argparse.Namespace) -> Iterator[Row]:
    """Measure a double that forks each kernel on request."""
    with double(pool_size=0, max_instances=options.sessions + 100, process_limit=4096) as platform:
        yield from calls(platform)
        yield from copies(platform, options.copies)
        yield from starts(platform, options.sessions)


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


def main() -> None:
    """Print the table as Markdown, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sessions", type=int, default=450)
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--cache", type=Path, default=Path("build/benchmarks"), help="of peers")
    options = parser.parse_args()
    head = {
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "version": agentdouble.__version__,
        "python": machine.python_version(),
        "kernel": machine.release(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "load": round(os.getloadavg()[0], 2),
    }
    print(", ".join(f"{name} {value}" for name, value in head.items()))
    print("\n| | measured | wanted |\n|---|---|---|")
    rows = []
    for row in itertools.chain(
        sandboxes(options), first_answers(), peers.rows(options.cache.resolve())
    ):
        rows.append(row)
        print(row, flush=True)
    if options.json:
        options.json.write_text(
            json.dumps({**head, "rows": [asdict(row) for row in rows]}, indent=2)
        )


if __name__ == "__main__":
    main()
