"""The cost of copying a session with pandas and 200 MiB of data: time, CPU, memory.

Run: python -m tests.benchmarks.bench_copies [--copies 500] [--at-once 20]

A copy is measured from the request until its first answer, with its own files. Beside it, in turns:
a new session that imports pandas and makes the data.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from pathlib import Path

from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.kernel_pool import KernelPool, PooledKernel
from agentdouble.settings import Settings

SETUP = """
import numpy, pandas, os
data = pandas.DataFrame(numpy.random.default_rng(0).random((6_553_600, 4)))
open('data.txt', 'w').write('x' * 1000); os.makedirs('sub'); os.chdir('sub')
os.environ['PREPARED'] = 'yes'
state = {}
"""
LOOK = "print(len(data), os.path.getsize('../data.txt'), os.environ['PREPARED'], len(state))"
SEEN = "6553600 1000 yes 0"
CHANGE = "state['mine'] = 1; data.iloc[0, 0] = 2; open('../data.txt', 'a').write('mine')"
EVERY = 50  # copies, after which a new session is measured


async def answer(kernel: Kernel, code: str) -> str:
    result = await kernel.execute(code, timeout_s=60, output_limit=1 << 20)
    assert "ok" == result.status, result
    return "".join(output.text or "" for output in result.outputs).strip()


def memory_mib(pid: int | None) -> dict[str, float]:
    """Return the private memory and the share of the shared memory of a process."""
    memory = {"Private": 0, "Pss": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("Private_Clean", "Private_Dirty", "Pss"):
            memory[name.partition("_")[0]] += int(value.split()[0])
    return {name: kib / 1024 for name, kib in memory.items()}


async def new_session(pool: KernelPool) -> tuple[PooledKernel, float]:
    start = time.perf_counter()
    pooled = await pool.take()
    await answer(pooled.kernel, SETUP)
    return pooled, time.perf_counter() - start


async def measure(copies: int, at_once: int) -> None:
    pool = KernelPool(Settings(pool_size=0))
    await pool.take()  # so that the fork server has started
    source, first_s = await new_session(pool)
    start = time.perf_counter()
    snapshot = await pool.snapshot(source.kernel, source.workspace)
    print(f"source {first_s * 1e3:.0f} ms; snapshot {(time.perf_counter() - start) * 1e3:.1f} ms")
    took, built, private, pss, living = [], [first_s], [], [], []
    for number in range(1, copies + 1):
        start = time.perf_counter()
        copy = await pool.copy(snapshot)
        values = await answer(copy.kernel, LOOK)
        took.append(time.perf_counter() - start)
        assert values == SEEN, values
        living.append(copy)
        if len(living) == at_once:
            for clone in living:
                used = memory_mib(clone.kernel.pid)
                private.append(used["Private"])
                pss.append(used["Pss"])
            await answer(living[0].kernel, CHANGE)
            for clone in living:
                await clone.kernel.kill("measured")
                await asyncio.to_thread(clone.workspace.remove)
            living.clear()
        if number % EVERY == 0 and len(built) < 4:
            other, took_s = await new_session(pool)
            built.append(took_s)
            await other.kernel.kill("measured")
    assert await answer(source.kernel, LOOK) == SEEN
    print(f"| a session with the data | {statistics.median(built) * 1e3:.0f} ms |")
    took.sort()
    p95 = took[int(len(took) * 0.95)]
    print(f"| {copies} copies, until the first answer | p50 {statistics.median(took) * 1e3:.1f} ms, "
          f"p95 {p95 * 1e3:.1f} ms, worst {took[-1] * 1e3:.1f} ms |")  # fmt: skip
    print(f"| private memory of a copy, {at_once} at once | {statistics.median(private):.1f} MiB, "
          f"most {max(private):.1f}; PSS {statistics.median(pss):.1f} |")  # fmt: skip
    await pool.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--copies", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=20)
    options = parser.parse_args()
    asyncio.run(measure(options.copies, options.at_once))
