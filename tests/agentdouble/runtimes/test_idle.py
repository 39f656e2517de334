from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import eq, le
from pathlib import Path

import httpx
import psutil
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import eventually, http
from tests.agentdouble.runtimes import small


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    directory = tmp_path_factory.mktemp("runtimes")
    tables = [
        small.table(directory / "telling"),
        small.table(directory / "brief", idle_s=60),
        small.table(directory / "kept", min_instances=1),
    ]
    with Emulator(runtimes=tables, runtime_idle_s=600) as double:
        yield double


def process(double: Emulator, name: str) -> str:
    answer = http.get(f"{double.url}/runtimes/{name}/")
    assert 200 == answer.status_code, answer.text
    return answer.text


def advance(double: Emulator, seconds: int) -> None:
    double.clock.advance(dt.timedelta(seconds=seconds))


def test_idle_runtime_scales_to_zero_and_restarts_on_demand(
    double: Emulator,
) -> None:
    """After five minutes unless configured; the minimum number stays (HST-02)."""
    names = ("telling", "brief", "kept")
    at_first = [process(double, name) for name in names]
    advance(double, 61)
    after_one_minute = [process(double, name) for name in names]
    advance(double, 301)
    at_last = [process(double, name) for name in names]

    assert [True, False, True] == [*map(eq, at_first, after_one_minute)]
    assert [False, False, True] == [*map(eq, after_one_minute, at_last)]


def test_deleting_a_runtime_fails_requests_in_flight(
    tmp_path: Path,
) -> None:
    """Waiting requests fail as well."""
    table = small.table(tmp_path / "deleted", small.STANDING, max_concurrency=1, max_instances=1)
    with Emulator(runtimes=[table]) as double, ThreadPoolExecutor() as pool:
        pending = [pool.submit(http.get, f"{double.url}/runtimes/deleted/") for _ in range(2)]
        eventually(lambda: double.runtimes.logs("deleted"), lambda log: "asked" in log)
        eventually(lambda: _under_way(double, "deleted"), partial(eq, 2))
        double.runtimes.delete("deleted")
        outcomes = [future.result() for future in pending]

    assert {(502, "InstanceLostError"), (503, "RuntimeEndedError")} == set(map(_summary, outcomes))


def test_double_stops_while_instances_start(tmp_path: Path) -> None:
    """Nothing is left running, and waiting callers get an error."""
    table = small.table(tmp_path / "slow", "import time; time.sleep(100)", min_instances=2)
    with ThreadPoolExecutor() as pool:
        for started in (0, 1):
            with Emulator(runtimes=[table]) as double:
                pending = pool.submit(http.get, f"{double.url}/runtimes/slow/")
                eventually(lambda: _under_way(double, "slow"), partial(eq, 1))
                eventually(lambda: len(_pids(double)), partial(le, started))
                pids = _pids(double)
            assert (503, "RuntimeEndedError") == _summary(pending.result())
            assert not any(psutil.pid_exists(pid) for pid in pids)


def _summary(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def _under_way(double: Emulator, name: str) -> int:
    """Return a runtime's number of running and waiting requests."""
    figures = http.get(f"{double.url}/_emulator/metrics").text
    match = re.search(f'requests_in_flight{{runtime="{name}"}} ([0-9.]+)', figures)
    return int(float(match[1])) if match else 0


def _pids(double: Emulator) -> list[int]:
    runtimes = http.get(f"{double.url}/_emulator/runtimes").json()["runtimes"]
    return [item["pid"] for runtime in runtimes for item in runtime["instances"] if item["pid"]]
