"""Doubles, servers and disks that fail during writes lose nothing acknowledged.

What was refused is not there; of what got no answer either may be.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.errors import StateError
from tests import postgresql, small_disk
from tests.agentdouble.calling import http
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]

USER = "/apps/coder/users/u/sessions"
WRITERS = 4
_DOUBLE = """
import sys
from agentdouble import Emulator
double = Emulator(state=sys.argv[1])
double.serve(lambda: print(double.url, flush=True))
"""


@dataclass
class Book:
    """The requested names: acknowledged, refused, or neither."""

    acknowledged: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def compare(self, present_names: set[str], stress: Stress) -> None:
        """Tally what is missing, and what exists although it was refused."""
        for name in sorted(self.acknowledged - present_names):
            stress.lost(f"{name} was acknowledged and is gone")
        for name in sorted(self.refused & present_names):
            stress.lost(f"{name} was refused and is there")


class Writers:
    """Threads that write on every HTTP surface of a double until they are stopped."""

    def __init__(self, url: str, book: Book, prefix: str) -> None:
        self._url = url
        self._book = book
        self._prefix = prefix
        self._over = threading.Event()
        self.begun = threading.Semaphore(0)
        self.tried = 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Write inside the context."""
        with ThreadPoolExecutor(WRITERS) as pool:
            done = [pool.submit(self._write, number) for number in range(WRITERS)]
            try:
                yield
            finally:
                self._over.set()
            for future in done:
                future.result()

    def _write(self, writer: int) -> None:
        number = 0
        while not self._over.is_set():
            name = f"{self._prefix}-{writer}-{number}"
            number += 1
            self.tried += 1
            kinds = (self._session, self._artifact, self._event)
            try:
                answer = kinds[number % 3](name)
            except httpx.TransportError:
                if not self._over.is_set():
                    continue
                return
            finally:
                self.begun.release()
            (self._book.acknowledged if answer.status_code == 200 else self._book.refused).add(name)

    def _session(self, name: str) -> httpx.Response:
        return http.post(f"{self._url}{USER}/{name}", json={"state": {"user:n": name}}, timeout=60)

    def _artifact(self, name: str) -> httpx.Response:
        body = {"filename": name, "artifact": {"text": "x" * 2000}}
        return http.post(f"{self._url}{USER}/one/artifacts", json=body, timeout=60)

    def _event(self, name: str) -> httpx.Response:
        body = {"stateDelta": {name: True}}
        return http.patch(f"{self._url}{USER}/one", json=body, timeout=60)


def names_at(url: str) -> set[str]:
    """Return every name in a double."""
    present_names = {session["id"] for session in http.get(url + USER, timeout=60).json()}
    present_names |= set(http.get(f"{url}{USER}/one/artifacts", timeout=60).json())
    return present_names | set(http.get(f"{url}{USER}/one", timeout=60).json()["state"])


@contextmanager
def process(state: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start a double in a process and yield its address."""
    command = [sys.executable, "-c", _DOUBLE, state]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as double:
        try:
            assert double.stdout is not None
            yield double.stdout.readline().strip(), double
        finally:
            double.kill()


@pytest.fixture
def server() -> Iterator[postgresql.Server]:
    """Start a PostgreSQL server for this test."""
    with postgresql.serving(postgresql.required()) as server:
        yield server


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_kill_of_the_double_loses_no_acknowledged_write(
    kind: str, stress: Stress, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """SIGKILL interrupts writes; the next double has all that were acknowledged."""
    state = f"sqlite:///{tmp_path / 'state.db'}"
    if kind == "postgresql":
        state = request.getfixturevalue("server").url
    book, kills = Book(), stress.scale(1, 20)
    for round_ in range(kills):
        with process(state) as (url, double):
            http.post(f"{url}{USER}/one", json={})
            book.compare(names_at(url), stress)
            writers = Writers(url, book, f"r{round_}")
            with writers.at_work():
                for _ in range(stress.random.randint(10, 40)):
                    writers.begun.acquire()
                double.send_signal(signal.SIGKILL)
            stress.tried += writers.tried
    with Emulator(state=state) as last:
        book.compare(names_at(last.url), stress)
    stress.figures |= {"kills": kills, "acknowledged": len(book.acknowledged)}


def test_kill_of_postgresql_loses_no_write(stress: Stress, server: postgresql.Server) -> None:
    """PostgreSQL restarts during writes; the double continues and stays the only owner."""
    book, kills = Book(), stress.scale(1, 10)
    with Emulator(state=server.url) as double:
        http.post(f"{double.url}{USER}/one", json={})
        writers = Writers(double.url, book, "w")
        with writers.at_work():
            for _ in range(kills):
                _await(writers, stress)
                server.stop("immediate")
                server.start()
                if not _healthy(double.url):
                    stress.failed("the double did not go on")
                if _starts(server.url):
                    stress.failed("a second owner was let in")
                _await(writers, stress)
        book.compare(names_at(double.url), stress)
    with Emulator(state=server.url) as last:
        book.compare(names_at(last.url), stress)
    stress.tried += writers.tried
    stress.figures |= {"kills": kills, "acknowledged": len(book.acknowledged)}
    stress.figures["refused"] = len(book.refused)


def test_full_disk_loses_no_acknowledged_write(stress: Stress, tmp_path: Path) -> None:
    """The disk fills up and gets space again during writes."""
    with small_disk.mounted(tmp_path, "2m"):
        _fill_and_free(stress, tmp_path)


def _fill_and_free(stress: Stress, folder: Path) -> None:
    book, state, times = Book(), f"sqlite:///{folder / 'state.db'}", stress.scale(2, 10)
    with Emulator(state=state) as double:
        http.post(f"{double.url}{USER}/one", json={})
        writers = Writers(double.url, book, "w")
        with writers.at_work():
            for _ in range(times):
                with small_disk.filled(folder):
                    _until_more(book.refused, writers)
                _until_more(book.acknowledged, writers)
        book.compare(names_at(double.url), stress)
    with Emulator(state=state) as last:
        book.compare(names_at(last.url), stress)
    stress.tried += writers.tried
    stress.figures |= {"filled": times, "acknowledged": len(book.acknowledged)}
    stress.figures["refused"] = len(book.refused)


def _await(writers: Writers, stress: Stress) -> None:
    for _ in range(stress.random.randint(5, 20)):
        writers.begun.acquire()


def _until_more(names: set[str], writers: Writers) -> None:
    before = len(names)
    for _ in range(5000):
        if len(names) > before:
            return
        writers.begun.acquire()
    raise AssertionError("the writers were answered thousands of times, and never so")


def _healthy(url: str) -> bool:
    answers = (http.get(f"{url}/_emulator/health", timeout=60) for _ in range(20_000))
    return any(answer.status_code == 200 for answer in answers)


def _starts(state: str) -> bool:
    """Return whether a second double can open the state."""
    try:
        with Emulator(state=state):
            return True
    except StateError:
        return False
