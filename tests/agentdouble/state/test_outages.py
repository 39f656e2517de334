"""What becomes of a state in PostgreSQL when the connection to it is lost."""

from __future__ import annotations

import asyncio
import importlib.util
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest

if importlib.util.find_spec("asyncpg") is None:
    pytest.skip("asyncpg is not installed: pip install asyncpg", allow_module_level=True)

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from agentdouble import Emulator
from agentdouble.errors import StateError
from agentdouble.processes.fork_server import signals
from agentdouble.state import Change, Store, link, make_store, owning, postgresql
from tests.agentdouble.calling import http
from tests.postgresql import Server

pytestmark = [pytest.mark.libraries, pytest.mark.slow]

_OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


def ask(url: str, query: str) -> list[Any]:
    """Put a query to the server on a connection of its own."""

    async def do() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    return asyncio.run(do())


async def own(url: str) -> None:
    """Own the state for a moment, as another double whose turn comes when the first is cut off."""
    other, cutting = await asyncpg.connect(url), await asyncpg.connect(url)
    locked = asyncio.ensure_future(other.execute(f"SELECT pg_advisory_lock({owning.LOCK})"))
    locks = "FROM pg_locks WHERE locktype = 'advisory' AND"
    while not await cutting.fetchval(f"SELECT count(*) {locks} NOT granted"):
        pass
    await cutting.execute(f"SELECT pg_terminate_backend(pid) {locks} granted")
    await locked
    await other.execute("UPDATE agentdouble.owner SET name = 'another'")
    await other.close()
    await cutting.close()


def create(double: Emulator, session: str) -> int:
    """Create a session of the API server and return the status."""
    url = f"{double.url}/apps/coder/users/u/sessions/{session}"
    status: int = http.post(url, json={}, timeout=60).status_code
    return status


def sessions(double: Emulator) -> set[str]:
    found = http.get(f"{double.url}/apps/coder/users/u/sessions", timeout=60).json()
    return {one["id"] for one in found}


def health(double: Emulator) -> tuple[int, dict[str, Any]]:
    answer = http.get(f"{double.url}/_emulator/health", timeout=60)
    return answer.status_code, answer.json()


def until_healthy(double: Emulator) -> None:
    """Ask until the double is well again; each question is a real one, and takes its time."""
    for _ in range(20_000):
        if health(double)[0] == 200:
            return
    raise AssertionError(health(double))


def kept(url: str) -> set[str]:
    """Return the sessions that a double finds which starts now."""
    with Emulator(state=url) as double:
        return sessions(double)


def test_a_lost_connection_is_made_anew(server: Server) -> None:
    """Writes go on; a table of that name elsewhere is not touched."""
    ask(server.url, "CREATE TABLE public.records (kind text, id text, record text)")
    with Emulator(state=server.url) as double:
        assert 200 == create(double, "before")
        ask(server.url, _OTHERS + " AND backend_type = 'client backend'")
        assert 200 == create(double, "after")
        assert 200 == health(double)[0]

    assert [] == ask(server.url, "SELECT * FROM public.records")
    assert {"before", "after"} == kept(server.url)


def test_a_server_that_is_gone_is_told_and_awaited(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused meanwhile is not there; afterwards the double goes on by itself."""
    monkeypatch.setattr(link, "PATIENCE_S", 0.3)
    with Emulator(state=server.url) as double:
        assert 200 == create(double, "before")
        server.stop()
        refused = http.post(f"{double.url}/apps/coder/users/u/sessions/lost", json={}, timeout=60)
        status, told = health(double)
        during = sessions(double)
        server.start()
        until_healthy(double)
        assert 200 == create(double, "after")
        after = sessions(double)

    assert 503 == refused.status_code
    assert "The state database postgresql://double@" in refused.text
    assert (503, "failing") == (status, told["status"])
    assert {"before"} == during
    assert {"before", "after"} == after == kept(server.url)


def test_who_waits_is_answered_when_the_server_is_back(server: Server) -> None:
    """Within the patience nobody hears of an outage."""
    with Emulator(state=server.url) as double:
        server.stop()
        server.start()
        assert 200 == create(double, "one")

    assert {"one"} == kept(server.url)


def test_another_owner_meanwhile_is_the_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first double remembers is not what is kept: it writes nothing any more."""
    monkeypatch.setattr(link, "PATIENCE_S", 0.3)
    with Emulator(state=server.url) as first:
        assert 200 == create(first, "of-the-first")
        asyncio.run(own(server.url))
        refused = http.post(f"{first.url}/apps/coder/users/u/sessions/x", json={}, timeout=60)
        status, told = health(first)

    assert 503 == refused.status_code
    assert 503 == status
    assert "Restart the double" in told["error"]["message"]
    assert {"of-the-first"} == kept(server.url)


def run(work: Callable[[Store], Any], url: str) -> Any:
    """Do something with an open store."""

    async def do() -> Any:
        store = make_store(url)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(do())


def test_a_server_that_says_nothing_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are the check of it, and the end of the connection."""
    monkeypatch.setattr(postgresql, "_CONNECT_S", 2)
    undone: list[str] = []

    async def work(store: Store) -> list[str]:
        monkeypatch.setattr(link, "ANSWER_S", 0.2)
        monkeypatch.setattr(link, "PATIENCE_S", 0.5)
        monkeypatch.setattr(link, "_CLOSE_S", 0.1)
        monkeypatch.setattr(postgresql, "_CHECK_S", 0.05)
        (backend,) = await _backends(server.url)
        signals.send(server.pid, signal.SIGSTOP)
        signals.send(backend, signal.SIGSTOP)
        try:
            with pytest.raises(StateError) as checked:
                await store.check()
            with pytest.raises(StateError) as written:
                await store.write([Change("tool", "1", {})], lambda: undone.append("1"))
            await store.close()
        finally:
            signals.send(backend, signal.SIGCONT)
            signals.send(server.pid, signal.SIGCONT)
        return [str(checked.value), str(written.value)]

    told = run(work, server.url)

    assert "does not answer" in told[0]
    assert "The state database" in told[1]
    assert ["1"] == undone


async def _backends(url: str) -> list[int]:
    connection = await asyncpg.connect(url)
    found = await connection.fetch(
        "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )
    await connection.close()
    return [row["pid"] for row in found]


@pytest.mark.parametrize("spoilt", ["read-only", "no permission", "nobody listens"])
def test_a_server_that_cannot_be_used_is_named_at_the_start(server: Server, spoilt: str) -> None:
    """The double does not start, and says why."""
    url = server.url
    if spoilt == "read-only":
        ask(url, "ALTER DATABASE postgres SET default_transaction_read_only = on")
    elif spoilt == "no permission":
        ask(url, "CREATE USER limited")
        url = url.replace("double@", "limited@")
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"postgresql://double@127.0.0.1:{free.getsockname()[1]}/postgres"

    with pytest.raises(StateError) as caught:
        Emulator(state=url).start()

    said = {
        "read-only": "read-only transaction",
        "no permission": "permission denied",
        "nobody listens": "cannot be opened",
    }
    assert said[spoilt] in str(caught.value)


def test_a_schema_that_is_given_needs_no_right_to_make_one(server: Server) -> None:
    """A user who may only use what is there is enough."""
    ask(server.url, "CREATE USER limited")
    ask(server.url, "CREATE SCHEMA agentdouble AUTHORIZATION limited")
    url = server.url.replace("double@", "limited@")

    with Emulator(state=url) as double:
        assert 200 == create(double, "one")

    assert {"one"} == kept(url)


def test_a_server_that_becomes_a_replica_is_left(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again until one can write there again."""
    monkeypatch.setattr(link, "PATIENCE_S", 0.3)
    with Emulator(state=server.url) as double:
        ask(server.url, "ALTER DATABASE postgres SET default_transaction_read_only = on")
        ask(server.url, _OTHERS + " AND backend_type = 'client backend'")
        assert 503 == create(double, "refused")
        assert 503 == health(double)[0]
        writable = "SET default_transaction_read_only = off; ALTER DATABASE postgres RESET ALL"
        _execute(server.url, writable)
        until_healthy(double)
        assert 200 == create(double, "after")

    assert {"after"} == kept(server.url)


def _execute(url: str, script: str) -> None:
    async def do() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(script.partition("; ")[2])
        await connection.close()

    asyncio.run(do())


def test_a_schema_that_is_dropped_is_told(server: Server) -> None:
    """Everything is refused by name until the double is restarted."""
    with Emulator(state=server.url) as double:
        ask(server.url, "DROP SCHEMA agentdouble CASCADE")
        assert 503 == create(double, "refused")
        status, told = health(double)

    assert 503 == status
    assert "its tables have been dropped" in told["error"]["message"]


def test_a_commit_without_an_answer_is_taken_back_when_it_was_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been made; who was refused finds nothing of it."""
    monkeypatch.setattr(link, "PATIENCE_S", 0.3)
    undone: list[str] = []

    async def work(store: Store) -> dict[str, Any]:
        await store.write([Change("tool", "1", {"n": 1})], lambda: None)
        real = AsyncConnection.commit

        async def commit(connection: AsyncConnection) -> None:
            await real(connection)
            monkeypatch.setattr(AsyncConnection, "commit", real)
            server.stop()
            await connection.execute(text("SELECT 1"))

        monkeypatch.setattr(AsyncConnection, "commit", commit)
        changes = [Change("tool", "1", {"n": 2}), Change("tool", "2", {})]
        with pytest.raises(StateError):
            await store.write(changes, lambda: undone.append("both"))
        server.start()
        monkeypatch.setattr(link, "PATIENCE_S", 60)
        await store.write([Change("tool", "3", {})], lambda: None)
        return dict(await store.load("tool"))

    assert {"1": {"n": 1}, "3": {}} == run(work, server.url)
    assert ["both"] == undone
