"""Repeated rounds of everything that a double does leave nothing behind."""

from __future__ import annotations

import gc
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("counts descriptors and processes as Linux shows them", allow_module_level=True)

from agentdouble import Emulator
from tests.agentdouble.calling import body_of, call, eventually, http, run
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
