"""A refused write leaves nothing behind on any surface."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.errors import StateError
from tests import small_disk
from tests.agentdouble.calling import act, http, refusal

USER = "/apps/coder/users/u/sessions"


@contextmanager
def limited_pages(double: Emulator) -> Iterator[None]:
    """Keep the state file from growing, like a full disk."""
    store: Any = double._platform.context.store

    async def limit(pages: int) -> None:
        await store._connected(lambda it: it.exec_driver_sql(f"PRAGMA max_page_count = {pages}"))

    double._call(limit(1))
    try:
        yield
    finally:
        double._call(limit(1_000_000))


def names(double: Emulator) -> set[str]:
    """Return the names on all surfaces that keep records."""
    present = {session["id"] for session in http.get(double.url + USER).json()}
    present |= {tool["Name"] for tool in act(double, "ListTools")["Tools"]}
    present |= {service.name for service in double.mcp.list()}
    present |= set(double.runtimes.names)
    present |= set(http.get(f"{double.url}{USER}/before/artifacts").json())
    return present


def creating(double: Emulator) -> dict[str, int]:
    """Try to create sixty sessions with some state, and return the status of each."""

    def create(number: int) -> tuple[str, int]:
        body = {"state": {"text": "x" * 5000, "user:n": number}}
        answer = http.post(f"{double.url}{USER}/s{number}", json=body, timeout=60)
        return f"s{number}", answer.status_code

    with ThreadPoolExecutor(8) as pool:
        return dict(pool.map(create, range(60)))


def test_a_full_disk_keeps_no_refused_session(tmp_path: Path) -> None:
    """Exactly the acknowledged sessions exist, also after a restart."""
    with small_disk.mounted(tmp_path, "256k"):
        state = f"sqlite:///{tmp_path / 'state.db'}"
        with Emulator(state=state) as double:
            http.post(f"{double.url}{USER}/before", json={})
            with small_disk.filled(tmp_path):
                answers = creating(double)
                health = http.get(f"{double.url}/_emulator/health")
            during = names(double)
            well = http.get(f"{double.url}/_emulator/health")
            again = http.post(f"{double.url}{USER}/after", json={}).status_code
        with Emulator(state=state) as double:
            before = names(double)

    acknowledged = {id_ for id_, status in answers.items() if status == 200}
    assert {507} == set(answers.values()) - {200}
    assert (503, "failing") == (health.status_code, health.json()["status"])
    assert {"before", "sandbox", *acknowledged} == during
    assert (200, 200) == (well.status_code, again)
    assert {*during, "after"} == before


def until_refused(make: Callable[[int], object]) -> int:
    """Create items until one is refused and return how many exist."""
    for number in range(1000):
        try:
            make(number)
        except StateError:
            return number
    raise AssertionError("nothing was refused")


@pytest.mark.parametrize("kind", ["mcp", "runtimes"])
def test_refused_services_and_runtimes_do_not_exist(tmp_path: Path, kind: str) -> None:
    """All acknowledged ones do, also after a restart."""
    state = f"sqlite:///{tmp_path / 'state.db'}"
    with Emulator(state=state) as double:
        make: dict[str, Callable[[int], object]] = {
            "mcp": lambda number: double.mcp.create(f"m{number}", "http://127.0.0.1:9/mcp"),
            "runtimes": lambda number: double.runtimes.create(f"r{number}", "a:b"),
        }
        make[kind](1000)
        with limited_pages(double):
            created = until_refused(make[kind])
            during = names(double)
        make[kind](1001)
        after = names(double)
    with Emulator(state=state) as double:
        before = names(double)

    letter = kind[0]
    expected = {f"{letter}{number}" for number in (*range(created), 1000)}
    assert expected == during - {"sandbox"}
    assert expected | {f"{letter}1001"} == after - {"sandbox"}
    assert after == before


def test_refused_writes_change_no_surface(tmp_path: Path) -> None:
    """This covers creations and updates, and the double recovers by itself."""
    state = f"sqlite:///{tmp_path / 'state.db'}"
    big = "x" * 100_000
    with Emulator(state=state) as double:
        base = f"{double.url}{USER}/before"
        http.post(base, json={})
        act(double, "CreateTool", Name="kept", ToolType="CodeEnv")
        before = names(double)
        with limited_pages(double):
            artifact = {"filename": "a", "artifact": {"text": big}}
            messages = [
                http.post(f"{double.url}{USER}/new", json={"state": {"s": big}}).status_code,
                http.patch(base, json={"stateDelta": {"s": big}}).status_code,
                http.post(f"{base}/artifacts", json=artifact).status_code,
            ]
            tool = refusal(
                double, "CreateTool", Name="new", ToolType="CodeEnv", Description=big[:60_000]
            )
            during = names(double)
            state_of = http.get(base).json()
        after = http.post(f"{double.url}{USER}/after", json={}).status_code
    with Emulator(state=state) as double:
        restored = names(double)

    assert [507, 507, 507] == messages
    assert (507, "StateError") == tool[:2]
    assert before == during
    assert ([], {}) == (state_of["events"], state_of["state"])
    assert 200 == after
    assert {*before, "after"} == restored


def test_a_run_that_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    """Both as an answer and in a stream, and its session stays unchanged."""
    message = {"role": "user", "parts": [{"text": "x" * 100_000}]}
    body = {"appName": "coder", "userId": "u", "sessionId": "one", "newMessage": message}
    with Emulator(state=f"sqlite:///{tmp_path / 'state.db'}") as double:
        http.post(f"{double.url}{USER}/one", json={})
        with limited_pages(double):
            answer = http.post(f"{double.url}/run", json=body)
            stream = http.post(f"{double.url}/run_sse", json=body)
            events = http.get(f"{double.url}{USER}/one").json()["events"]

    assert 507 == answer.status_code
    assert "The state file" in answer.json()["detail"]
    assert "StateError" in stream.text
    assert [] == events


def test_a_replaced_file_is_not_written(tmp_path: Path) -> None:
    """Its new owner can use it; once put back, the double goes on."""
    path = tmp_path / "state.db"
    with Emulator(state=f"sqlite:///{path}") as double:
        http.post(f"{double.url}{USER}/before", json={})
        path.rename(tmp_path / "aside.db")
        refused = [http.post(f"{double.url}{USER}/x", json={}).status_code]
        with Emulator(state=f"sqlite:///{path}") as second:
            refused.append(http.post(f"{double.url}{USER}/x", json={}).status_code)
            assert 503 == http.get(f"{double.url}/_emulator/health").status_code
            assert 200 == http.post(f"{second.url}{USER}/second", json={}).status_code
        (tmp_path / "aside.db").rename(path)
        assert 200 == http.post(f"{double.url}{USER}/after", json={}).status_code
        assert {"before", "after", "sandbox"} == names(double)

    assert [503, 503] == refused


@pytest.mark.slow
def test_reading_the_file_in_process_keeps_it_locked(tmp_path: Path) -> None:
    """Reading drops SQLite's own lock, but not ours."""
    path = tmp_path / "state.db"
    script = f"from agentdouble import Emulator; Emulator(state='sqlite:///{path}').start()"
    with Emulator(state=f"sqlite:///{path}"):
        path.read_bytes()
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )

    assert "Another double uses it" in done.stderr
