"""Persistence: the same answers from each kind of state, across restarts and kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.processes.fork_server import processes
from tests.agentdouble.api_server.wire import (
    AGENTS,
    JSON,
    create,
    read,
    run,
    run_body,
    run_order,
    sessions_of,
    texts,
)
from tests.agentdouble.calling import http

DATA = {"inlineData": {"data": "-_8=", "mimeType": "x/y"}}


@pytest.fixture(params=["sqlite", "postgresql"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.db'}"
    url: str = request.getfixturevalue("postgresql_url")
    return url


@contextmanager
def serving(state: str) -> Iterator[Emulator]:
    with Emulator(agents=AGENTS, state=state) as double:
        yield double


def contents(double: Emulator) -> Any:
    """Return everything that can be read about the stored data."""
    paths = [
        sessions_of("ann", "scripted"),
        sessions_of("bob", "scripted"),
        f"{sessions_of('ann', 'scripted')}/s1",
        f"{sessions_of('ann', 'scripted')}/s2",
        f"{sessions_of('ann', 'scripted')}/gone",
        f"{sessions_of('ann', 'scripted')}/s1/artifacts",
        f"{sessions_of('ann', 'scripted')}/s1/artifacts/f/versions/metadata",
        f"{sessions_of('ann', 'scripted')}/s1/artifacts/f/versions/0",
        f"{sessions_of('ann', 'scripted')}/s1/artifacts/f",
        f"{sessions_of('ann', 'scripted')}/s1/artifacts/gone",
    ]
    return {path: http.get(double.url + path).text for path in paths}


def fill(double: Emulator) -> None:
    """Store one of every kind."""
    strange = {"ü": "\x00 ☃ 🦉", "big": 2**70, "user:u": [1], "app:a": None}
    create(double.url, "ann", {"sessionId": "s1", "state": strange}, "scripted")
    run_order(double.url, "ann", "s2", do="remember", x=1, **{"user:v": 2})
    create(double.url, "ann", {"sessionId": "gone"}, "scripted")
    run_order(double.url, "bob", do="tool")
    for number in range(12):
        run_order(double.url, "ann", do="say", texts=[f"turn {number}"])
    path = f"{double.url}{sessions_of('ann', 'scripted')}"
    half = json.dumps({"stateDelta": {"p": "\ud800", "\ud800": 1}})  # half of a character
    http.patch(f"{path}/s1", content=half, headers=JSON)
    http.delete(f"{path}/gone")
    for name, part in (("f", {"text": "one"}), ("f", DATA), ("gone", DATA)):
        http.post(f"{path}/s1/artifacts", json={"filename": name, "artifact": part})
    http.delete(f"{path}/s1/artifacts/gone")


def test_everything_survives_a_restart(state: str) -> None:
    """Byte by byte; and the double continues from there."""
    with serving(state) as first:
        fill(first)
        before = contents(first)
    with serving(state) as second:
        after = contents(second)
        run_order(second.url, "ann", do="say", texts=["goes on"])
        session = read(second.url, "ann", "s1", "scripted")

    assert before == after
    assert r'"p":"\ud800"' in before[f"{sessions_of('ann', 'scripted')}/s1"]
    assert '"turn 11"' in before[f"{sessions_of('ann', 'scripted')}/s1"]
    assert ["goes on"] == texts(session["events"])[-1:]
    assert 27 == len(session["events"])


def test_concurrent_large_artifacts_are_all_kept(state: str) -> None:
    """Each version with its own content, also after a restart."""
    path = f"{sessions_of('ann')}/s1/artifacts"

    def save(url: str, number: int) -> int:
        part = {"text": f"{number} " + "ü" * 300_000 * (number % 2)}
        body = {"filename": "user:a/b", "artifact": part}
        version: int = http.post(url + path, json=body, timeout=60).json()["version"]
        return version

    with serving(state) as first, ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(lambda number: save(first.url, number), range(8)))
    with serving(state) as second:
        loaded = [
            http.get(f"{second.url}{path}/user:a/b", params={"version": version}).json()["text"]
            for version in versions
        ]

    assert list(range(8)) == sorted(versions)
    assert [f"{n} " + "ü" * 300_000 * (n % 2) for n in range(8)] == loaded


SERVER = """
import sys, threading
from pathlib import Path
from agentdouble import Emulator

with Emulator(agents=Path(sys.argv[1]), state=sys.argv[2]) as double:
    print(double.url, flush=True)
    threading.Event().wait()
"""


@pytest.mark.slow
def test_kill_loses_no_acknowledged_event(state: str) -> None:
    """Nor leaves a partial one: SIGKILL during runs, repeatedly."""
    sessions_seen: list[str] = []
    for life in range(3):
        sessions_seen += _killed_during_runs(state, life)
    with serving(state) as double:
        sessions = [read(double.url, "ann", f"s{n}", "scripted") for n in range(3)]

    ids = {event["id"] for session in sessions for event in session["events"]}
    assert sessions_seen
    assert set() == set(sessions_seen) - ids
    for session in sessions:
        assert session["events"] == json.loads(json.dumps(session["events"]))
        assert {"content", "id", "timestamp", "author"} <= session["events"][-1].keys()


def _killed_during_runs(state: str, life: int) -> list[str]:
    """Run an agent in three sessions, kill the server, and return the received ids."""
    command = [sys.executable, "-c", SERVER, str(AGENTS), state]
    texts: list[str] = []
    enough = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()

        def work(session: str) -> None:
            body = run_body("ann", session, do="say", texts=[f"life {life}"])
            try:
                http.post(f"{url}{sessions_of('ann', 'scripted')}/{session}")
                while True:
                    texts.extend(event["id"] for event in run(url, body).json())
                    if len(texts) >= 30:
                        enough.set()
            except (httpx.TransportError, ValueError):
                return

        workers = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(3)]
        for worker in workers:
            worker.start()
        try:
            assert enough.wait(200)
        finally:
            processes.send(server.pid, signal.SIGKILL)
        for worker in workers:
            worker.join()
    return texts
