"""Figures of many sessions and of copies, without another server beside them."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil

from agentdouble.processes.usage import busy_ns
from doublecheck import Platform
from tests.benchmarks.conftest import pss_mib
from tests.benchmarks.served import busy_s, double, timed
from tests.benchmarks.table import Row, Section

PREPARED = """
import numpy, pandas
data = pandas.DataFrame(numpy.random.default_rng(0).random((6_553_600, 4)))
open('data.txt', 'w').write('x' * 1000)
"""
LOOK, SEEN = "print(len(data), len(open('data.txt').read()))", "6553600 1000\n"
AT_ONCE = 4  # callers
IDLE_S = 10.0
THIRDS = (("first", 60), ("second", 60), ("last", 55))
SERVED = (
    "The double alone: `agentdouble serve` in a process of its own, called with doublecheck's "
    "client over HTTP with signatures; isolation as the machine offers it, the journal kept, logs "
    "to nowhere, nothing in a database, no kernel ready"
)
MANY = f"{SERVED}. {AT_ONCE} callers begin sessions at once, and all of them stay alive."
COPIES = (
    f"{SERVED}. The session has numpy, pandas, a table of 200 MiB and a file. A copy is counted "
    "with its first answer and its end."
)
_names = (f"s{number}" for number in itertools.count())


def sections(count: int) -> Iterator[Section]:
    """Measure so many sessions that live at the same time."""
    with double(pool_size=0, max_instances=count + 100, process_limit=4096) as platform:
        yield Section("Many sessions", MANY, starts(platform, count))


def copied(count: int) -> Iterator[Section]:
    """Measure so many copies of one session."""
    with double(pool_size=0, max_instances=count + 100, process_limit=4096) as platform:
        yield Section("Copies of a session", COPIES, copies(platform, count))


def starts(platform: Platform, count: int) -> Iterator[Row]:
    """Measure new sessions while their number grows."""
    cpu = []
    for name, wanted in THIRDS:
        names = [next(_names) for _ in range(count // len(THIRDS))]
        start, before = time.perf_counter(), busy_s()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda it: platform.run_code("1 + 1", session_id=it), names))
        rate = len(names) / (time.perf_counter() - start)
        cpu.append((busy_s() - before) / len(names) * 1e3)
        yield Row(f"starts a second, the {name} third of {count}", rate, "", wanted, least=True)
    yield Row("CPU of a start, with its first answer", statistics.mean(cpu), "ms", 33)
    pids = [pid for session in platform.sandboxes() for pid in session.pids]
    memory = statistics.median(pss_mib(pid) for pid in pids)
    yield Row(f"memory of a session, {len(pids)} alive (PSS)", memory, "MiB", 10)
    processes = [child.pid for child in psutil.Process().children(recursive=True)]
    before_ns, start = sum(map(busy_ns, processes)), time.perf_counter()
    time.sleep(IDLE_S)
    used_s = (sum(map(busy_ns, processes)) - before_ns) / 1e9
    share = used_s / (time.perf_counter() - start) * 100
    yield Row(f"idle CPU of the double with {len(pids)} sessions", share, "% of a core", 1)


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
    yield Row("CPU of a copy", cpu_ms, "ms", 40)
    yield Row(f"time of a copy, {count} one after another", took_ms, "ms", 40)
    start = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: copy(), range(count)))
    yield Row(f"{count} copies, {AT_ONCE} at once", time.perf_counter() - start, "s", 2.5)

    def roll_back() -> None:
        source.resume(snapshot)
        assert SEEN == source.run(LOOK).stdout

    yield Row("return to a snapshot, with the first answer", timed(roll_back, 20)[0], "ms", 40)
    taken = [timed(source.snapshot, 1)[0] for _ in range(15)]
    yield Row("a snapshot: the first three of 15", statistics.median(taken[:3]), "ms", 50)
    yield Row("a snapshot: the last three of 15", statistics.median(taken[-3:]), "ms", 50)
