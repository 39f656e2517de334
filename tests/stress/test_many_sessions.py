"""Many sessions at once: they run code, start and end, and expire together."""

from __future__ import annotations

import datetime as dt
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentdouble import Emulator
from agentdouble.processes import capacity
from tests.agentdouble.calling import instances_of, text
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]

MINUTE = dt.timedelta(minutes=1)
MOST = 2000  # or as many as there is memory for: each takes 20 MiB


def test_many_sessions_work_and_expire_together(stress: Stress) -> None:
    """None fails, and each keeps its state until it expires."""
    count = min(stress.scale(24, MOST), capacity.session_limit().sessions - 8)
    with Emulator(pool_size=0, max_instances=count + 8) as double:
        text(double, "x = -1", "stays", ttl_s=86_400)
        numbers = list(range(count))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: _try(stress, double, f"x = {n}", n, ""), numbers))
            stress.random.shuffle(numbers)
            list(pool.map(lambda n: _try(stress, double, "print(x)", n, f"{n}\n"), numbers))
            stress.figures["living"] = len(instances_of(double))

            began = time.perf_counter()
            expiring = pool.submit(double.clock.advance, 31 * MINUTE)
            while not expiring.done():
                _try(stress, double, "print(x)", None, "-1\n")
            stress.figures["expired_s"] = round(time.perf_counter() - began, 1)
        if len(instances_of(double)) != 1:
            stress.lost(f"{len(instances_of(double))} live where one does")


def _try(stress: Stress, double: Emulator, code: str, number: int | None, expected: str) -> None:
    session = "stays" if number is None else f"s{number}"
    stress.tried += 1
    try:
        output = text(double, code, session)
    except AssertionError as error:
        stress.failed(f"{session}: {str(error)[:500]}")
        return
    if output != expected:
        stress.failed(f"{session}: {output!r}, not {expected!r}")
