"""Repeated rounds leave nothing behind; many sessions work at once and expire together."""

from __future__ import annotations

import datetime as dt
import gc
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from agentdouble import Emulator
from agentdouble.processes import capacity
from tests.agentdouble.calling import body_of, call, eventually, http, run, sessions_of, text
from tests.agentdouble.runtimes import small
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]


WARM = 3  # rounds; what is imported and kept once is there by then
POOLED = ("asyncio_", "AnyIO worker")  # threads of pools, which are bounded and begun when needed
LEFT_AT_ONCE = 4  # callers of each round who do not wait for their answer


@dataclass(frozen=True)
class Present:
    """The resources that a double holds."""

    processes: int
    threads: int
    descriptors: int
    files: int


def present(root: Path) -> Present:
    gc.collect()  # sockets that were let go of are closed now
    return Present(
        len(psutil.Process().children(recursive=True)),
        sum(not thread.name.startswith(POOLED) for thread in threading.enumerate()),
        len(os.listdir("/proc/self/fd")),  # noqa: PTH208 (names are all that is needed)
        sum(1 for _ in root.rglob("*")),
    )


class Rounds:
    """Uses every feature of a double a little, in random order, and resets it."""

    def __init__(self, double: Emulator, stress: Stress) -> None:
        self._double = double
        self._stress = stress
        self._kinds: dict[str, Callable[[], bool]] = {
            "python": lambda: run(double, "6 * 7", session="python")["success"] is True,
            "an error": lambda: run(double, "1 / 0", session="python")["success"] is False,
            "a refusal": lambda: call(double, body_of(double, "")).status_code == 400,
            "a runtime": lambda: self._get("/runtimes/one/").status_code == 200,
            "no runtime": lambda: self._get("/runtimes/none/").status_code == 404,
            "a broken runtime": lambda: self._get("/runtimes/broken/").status_code >= 500,
            "an invocation": self._invoke,
            "ping": lambda: self._get("/ping").status_code == 200,
            "leaving callers": self._leave,
        }

    def run(self) -> None:
        """Run one round of each kind, and reset the double."""
        kinds = [*self._kinds]
        self._stress.random.shuffle(kinds)
        for kind in kinds:
            self._stress.tried += 1
            if not self._kinds[kind]():
                self._stress.failed(f"{kind} was answered wrongly")
        http.post(f"{self._double.url}/_emulator/reset").raise_for_status()

    def _get(self, path: str) -> httpx.Response:
        return http.get(f"{self._double.url}{path}")

    def _invoke(self) -> bool:
        answer = http.post(f"{self._double.url}/invoke", json={"prompt": "hello"})
        return answer.status_code == 200

    def _leave(self) -> bool:
        """Request something slow to start, and close the connection before it has started."""
        at = urlsplit(self._double.url)
        for number in range(LEFT_AT_ONCE):
            with socket.create_connection((at.hostname, at.port), 60) as sock:
                sock.sendall(b"GET /runtimes/left/%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number)
        return True


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Return a directory with a short path, since a socket's path has at most 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="s-") as directory:
        yield Path(directory)


@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux shows of processes")
def test_rounds_leave_nothing_behind(
    stress: Stress, tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes, threads, descriptors and files do not grow after the first rounds."""
    root = short_path
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    tables = [small.table(tmp_path / name) for name in ("one", "left", "broken")]
    (tmp_path / "broken" / "broken").touch()
    with Emulator(runtimes=tables) as double:
        rounds = Rounds(double, stress)
        for _ in range(WARM):
            rounds.run()
        before = eventually(lambda: present(root), lambda state: state == present(root))
        memory = psutil.Process().memory_info().rss
        count = stress.scale(4, 400)
        for _ in range(count):
            rounds.run()
        stress.figures |= {"before": before, "after": present(root)}
        after = eventually(lambda: present(root), lambda state: _no_more(state, before))
        stress.figures["after"] = after
        grown = psutil.Process().memory_info().rss - memory
        stress.figures["memory"] = f"{grown / count / 2**20 * 1000:+.0f} MiB in 1,000 rounds"
        assert _no_more(after, before), (before, after)
    assert list(root.iterdir()) == []


def _no_more(after: Present, before: Present) -> bool:
    return (
        after.processes <= before.processes
        and after.threads <= before.threads
        and after.descriptors <= before.descriptors
        and after.files <= before.files
    )


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
            stress.figures["living"] = len(sessions_of(double))

            began = time.perf_counter()
            expiring = pool.submit(double.clock.advance, 31 * MINUTE)
            while not expiring.done():
                _try(stress, double, "print(x)", None, "-1\n")
            stress.figures["expired_s"] = round(time.perf_counter() - began, 1)
        if len(sessions_of(double)) != 1:
            stress.lost(f"{len(sessions_of(double))} live where one does")


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
