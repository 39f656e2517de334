from __future__ import annotations

import datetime as dt
import glob
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import eq, le
from pathlib import Path

import httpx
import psutil
import pytest

from agentdouble import Emulator
from agentdouble.runtimes import instance
from tests.agentdouble.calling import eventually, has_gone, http
from tests.agentdouble.runtimes import small
from tests.agentdouble.runtimes.asking import ask, asking_table, pids_outside

DEAF = ["sh", "-c", "trap '' TERM; python asking.py; true"]  # and so is what it starts
DETACH = "subprocess.Popen(['sleep', '300'], start_new_session=True).pid"
TREE = f"[os.getppid() or os.getpid(), os.getpid(), {DETACH}, {DETACH}]"
DOUBLE = """
import sys
from agentdouble import Emulator
with Emulator(runtimes=[{table!r}]) as double:
    from tests.agentdouble.runtimes.asking import pids_outside
    print(*pids_outside(double, "one", {tree!r}), flush=True)
    sys.stdin.read()
"""


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


def create(double: Emulator, directory: Path, **fields: object) -> None:
    table = asking_table("one", directory, **fields)
    double.runtimes.create(**table)


def test_runtime_that_ignores_sigterm_is_killed(
    double: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some seconds, with all its processes, detached ones included."""
    monkeypatch.setattr(instance.RuntimeInstance.end, "__defaults__", (0.1,))
    create(double, tmp_path, command=DEAF)
    pids = pids_outside(double, "one", TREE)
    alive = [psutil.pid_exists(pid) for pid in pids]

    double.runtimes.delete("one")

    assert [True] * 4 == alive
    assert [True] * 4 == [has_gone(pid, timeout_s=0) for pid in pids]


def test_runtime_that_exits_on_sigterm_is_not_waited_for(double: Emulator, tmp_path: Path) -> None:
    """Its detached processes end and its files are removed."""
    create(double, tmp_path)
    _, *pids = pids_outside(double, "one", TREE)
    mark = f"mark-{pids[0]}"
    ask(double, "one", f"pathlib.Path.home().joinpath({mark!r}).write_text('')")
    before = time.monotonic()

    double.runtimes.delete("one")

    assert instance.STOP_TIMEOUT_S > time.monotonic() - before
    assert [True] * 3 == [has_gone(pid, timeout_s=0) for pid in pids]
    # pathlib's raises where another double's directory goes meanwhile
    assert [] == glob.glob(f"{tempfile.gettempdir()}/agentdouble-*/*/home/{mark}")  # noqa: PTH207


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the guardian")
def test_killing_the_double_leaves_no_runtime(tmp_path: Path) -> None:
    """The fork server's guardian ends runtimes and their detached processes."""
    code = DOUBLE.format(table=asking_table("one", tmp_path, command=DEAF), tree=TREE)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()

    assert [True] * 4 == [has_gone(pid, timeout_s=30) for pid in pids]


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
