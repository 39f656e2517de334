"""A thousand requests while the instances that answer them are killed at random."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from agentdouble import Emulator
from agentdouble.processes.fork_server import signals
from tests.agentdouble.calling import TOKEN
from tests.agentdouble.runtimes import small

pytestmark = [pytest.mark.once, pytest.mark.slow]

REQUESTS, WORKERS, KILLED_EVERY = 1000, 24, 50
NAMES = ("one", "two", "three")

# Tells the test of each request, and waits until it has been heard, before it answers.
TELLING = """
import os, socket, threading, time
receipts = socket.create_connection(("127.0.0.1", int(os.environ["RECEIPTS"])))
one_at_a_time = threading.Lock()
def answer(connection):
    with connection:
        id = connection.recv(65536).split(b" ")[1].rpartition(b"/")[2]
        if id.isdigit():
            with one_at_a_time:
                receipts.sendall(id + b"\\n")
                receipts.recv(1)
            time.sleep(0.005)
        head = b"HTTP/1.1 200 OK\\r\\nconnection: close\\r\\ncontent-length: %d\\r\\n\\r\\n"
        connection.sendall(head % len(id) + id)
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=100)
while True:
    threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()
"""


class Receipts:
    """Hears which requests have reached an application, and how often."""

    def __init__(self) -> None:
        self.heard: Counter[int] = Counter()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._hear, args=[connection]))
            self._threads[-1].start()

    def _hear(self, connection: socket.socket) -> None:
        with connection:
            try:
                while line := connection.recv(100):
                    self.heard[int(line)] += 1
                    connection.sendall(b".")
            except ConnectionError:  # the instance was killed
                return


class Soak:
    """Asks, and kills an instance after each so many answers."""

    def __init__(self, url: str) -> None:
        self.answers: dict[int, httpx.Response] = {}
        self.killed: set[str] = set()
        self._url = url
        self._left = iter(range(REQUESTS))
        self._random = random.Random(9)

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=60, trust_env=False, verify=False) as client:
            await asyncio.gather(*(self._ask(client) for _ in range(WORKERS)))

    async def _ask(self, client: httpx.AsyncClient) -> None:
        for id_ in self._left:
            name = NAMES[id_ % len(NAMES)]
            self.answers[id_] = await client.post(f"{self._url}/runtimes/{name}/{id_}")
            if len(self.answers) % KILLED_EVERY == 0:
                await self._kill(client)

    async def _kill(self, client: httpx.AsyncClient) -> None:
        url = f"{self._url}/_emulator/runtimes"
        shown = (await client.get(url, headers={"X-API-Key": TOKEN})).json()["runtimes"]
        found = [
            instance for runtime in shown for instance in runtime["instances"] if instance["pid"]
        ]
        chosen = self._random.choice(found)
        try:
            signals.send(chosen["pid"], signal.SIGKILL)
        except ProcessLookupError:  # killed before, and not noticed yet
            return
        self.killed.add(chosen["name"])


@contextmanager
def leaving_nothing(directory: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that no process, thread, descriptor or temporary file is there that was not before.

    What other doubles of this process have may have gone meanwhile.
    """
    directory.mkdir()
    patch.setattr(tempfile, "tempdir", str(directory))
    here = psutil.Process()
    processes, threads = set(here.children(recursive=True)), set(threading.enumerate())
    descriptors = here.num_fds()
    yield
    assert set() == set(here.children(recursive=True)) - processes
    assert set() == set(threading.enumerate()) - threads
    assert descriptors >= here.num_fds()
    assert [] == list(directory.iterdir())


def test_requests_survive_the_death_of_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no instance was given is answered by another; none reaches an application twice.

    What was with an instance when it died is answered, or told so in a 502 that names it.
    """
    with leaving_nothing(tmp_path / "temporary", monkeypatch), closing(Receipts()) as receipts:
        given = {"environment": {"RECEIPTS": str(receipts.port)}, "max_concurrency": 4}
        tables = [small.table(tmp_path / name, TELLING, **given) for name in NAMES]
        with Emulator(runtimes=tables) as double:
            soak = Soak(double.url)
            asyncio.run(soak.run())

    answered = {id_ for id_, answer in soak.answers.items() if answer.status_code == 200}
    refused = {id_: answer for id_, answer in soak.answers.items() if id_ not in answered}
    assert set(range(REQUESTS)) == set(soak.answers)
    assert {1} == set(receipts.heard.values())
    assert answered <= set(receipts.heard)
    assert all(soak.answers[id_].text == str(id_) for id_ in answered)
    assert {502} >= {answer.status_code for answer in refused.values()}
    assert soak.killed >= {_instance(answer) for answer in refused.values()}
    assert len(refused) <= 4 * len(soak.killed)  # those that an instance had at most
    assert len(soak.killed) >= REQUESTS // KILLED_EVERY / 2


def _instance(refusal: httpx.Response) -> str:
    """Return the instance that a refusal says has been lost."""
    error = refusal.json()["error"]
    found = re.search(r"(one|two|three)-\d+", error["message"])
    assert found, error
    return found.group()
