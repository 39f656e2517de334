"""What sessions cost the calls of others, and a double that does nothing.

Run: python -m pytest tests/benchmarks/bench_many_sessions.py -s -o python_files='bench_*.py' \
    -o python_functions='bench_*'
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentdouble import Clock, Emulator, ledger
from agentdouble.sandbox.instances import Instances
from agentdouble.settings import Settings
from tests.agentdouble.calling import text

SIZES = (10, 10_000)
ROUNDS = 200
IDLE = 500
IDLE_S = 10.0


def bench_calls_among_others() -> None:
    """The time that each kind of call takes in the process, among few and among many."""
    few, many = (asyncio.run(_took(size)) for size in SIZES)
    for name, took in many.items():
        print(f"{name}: {few[name]:.3f} ms among {SIZES[0]}, {took:.3f} ms among {SIZES[1]}")
        assert took - few[name] < 0.2


async def _took(size: int) -> dict[str, float]:
    with ledger.using(ledger.Ledger({})):
        instances = Instances(Clock(), Settings.load(max_instances=2 * size + ROUNDS))
        for number in range(size):
            ended = await instances.get_or_create("t-1", f"u{number}")
            await instances.destroy(ended, "it may")
        living = [await instances.get_or_create("t-1", f"u{number}") for number in range(size)]
        one = living[size // 2]
        calls: dict[str, Any] = {
            "get": lambda _: instances.get_or_create("t-1", one.key.user_session_id),
            "look up by id": lambda _: instances.look_up(one.id, "t-1"),
            "new": lambda number: instances.get_or_create("t-1", f"new{number}"),
        }
        found = {name: await _each(call) for name, call in calls.items()}
        began = time.process_time()
        for _ in range(ROUNDS):
            instances.destroy_due()
        found["reaper"] = (time.process_time() - began) / ROUNDS * 1000
        await instances.close()
        return found


async def _each(call: Any) -> float:
    began = time.process_time()
    for number in range(ROUNDS):
        await call(number)
    return (time.process_time() - began) / ROUNDS * 1000


def bench_idle() -> None:
    """The processor time of a double with none, and with hundreds of real sessions at rest."""
    with Emulator(pool_size=0, max_instances=IDLE + 1) as double:
        text(double, "1", "first")
        alone = _idle_percent()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: text(double, "1", f"s{number}"), range(IDLE)))
        many = _idle_percent()
    print(f"idle: {alone:.2f} % of a core with 1 session, {many:.2f} % with {IDLE + 1}")


def _idle_percent() -> float:
    time.sleep(2)
    began, busy = time.monotonic(), time.process_time()
    time.sleep(IDLE_S)
    return (time.process_time() - busy) / (time.monotonic() - began) * 100
