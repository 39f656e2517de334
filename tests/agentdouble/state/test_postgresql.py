"""State in PostgreSQL: ownership of the database, and lost connections."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import signal
import sys
from typing import Any

import pytest

if importlib.util.find_spec("asyncpg") is None:
    pytest.skip("asyncpg is not installed: pip install asyncpg", allow_module_level=True)

import asyncpg

from agentdouble import Emulator
from agentdouble.errors import MissingExtraError, StateError
from agentdouble.processes.fork_server import processes
from agentdouble.state import Change, make_store, postgresql
from tests.agentdouble.calling import http
from tests.postgresql import Server

BACKENDS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"


async def query(url: str, sql: str) -> list[Any]:
    """Run a query on its own connection."""
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


def sql(url: str, statement: str) -> list[Any]:
    return asyncio.run(query(url, statement))


def create(double: Emulator, session: str) -> int:
    """Create a session of the API server and return the status."""
    url = f"{double.url}/apps/coder/users/u/sessions/{session}"
    status: int = http.post(url, json={}, timeout=60).status_code
    return status


def sessions(double: Emulator) -> set[str]:
    listed = http.get(f"{double.url}/apps/coder/users/u/sessions", timeout=60).json()
    return {session["id"] for session in listed}


def stored(url: str) -> set[str]:
    """Return the sessions that a new double reads."""
    with Emulator(state=url) as double:
        return sessions(double)


def start_error(url: str) -> str:
    with pytest.raises(StateError) as caught:
        Emulator(state=url).start()
    return str(caught.value)


def test_an_unreachable_server_is_named_without_the_password() -> None:
    """Connection refused."""
    message = start_error("postgresql://ann:secret@127.0.0.1:1/db")

    assert "The state database postgresql://ann:***@127.0.0.1:1/db cannot be opened" in message
    assert "secret" not in message


def test_a_database_belongs_to_one_double_at_a_time(postgresql_url: str) -> None:
    """A second double is refused until the first has stopped."""
    with Emulator(state=postgresql_url):
        message = start_error(postgresql_url)
    with Emulator(state=postgresql_url):
        pass

    assert message.endswith("Another double uses it.")


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra that installs it."""
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(MissingExtraError, match=r"pip install 'agentdouble\[postgres\]'"):
        make_store("postgresql://host/db")


@pytest.mark.slow
def test_a_lost_connection_is_replaced(server: Server) -> None:
    """Writes succeed afterwards; a table with the same name elsewhere is not touched."""
    sql(server.url, "CREATE TABLE public.records (kind text, id text, record text)")
    with Emulator(state=server.url) as double:
        assert 200 == create(double, "before")
        sql(server.url, f"SELECT pg_terminate_backend(pid) {BACKENDS}")
        assert 200 == create(double, "after")
        assert 200 == http.get(f"{double.url}/_emulator/health").status_code

    assert [] == sql(server.url, "SELECT * FROM public.records")
    assert {"before", "after"} == stored(server.url)


@pytest.mark.slow
def test_a_lost_connection_does_not_take_the_database_from_another_owner(server: Server) -> None:
    """Another client that takes the lock meanwhile keeps it."""

    async def take_lock() -> Any:
        other, admin = await asyncpg.connect(server.url), await asyncpg.connect(server.url)
        locked = asyncio.ensure_future(other.execute(f"SELECT pg_advisory_lock({postgresql.LOCK})"))
        locks = "FROM pg_locks WHERE locktype = 'advisory' AND"
        while not await admin.fetchval(f"SELECT count(*) {locks} NOT granted"):
            pass
        await admin.execute(f"SELECT pg_terminate_backend(pid) {locks} granted")
        await locked
        await admin.close()
        return other

    loop = asyncio.new_event_loop()
    with Emulator(state=server.url) as double, contextlib.closing(loop):
        assert 200 == create(double, "before")
        other = loop.run_until_complete(take_lock())
        refused = http.post(f"{double.url}/apps/coder/users/u/sessions/x", json={}, timeout=60)
        loop.run_until_complete(other.close())
        assert 200 == create(double, "after")

    assert (503, True) == (refused.status_code, "Another double uses it" in refused.text)
    assert {"before", "after"} == stored(server.url)


@pytest.mark.slow
def test_writes_are_refused_while_the_server_is_down(server: Server) -> None:
    """Refused records do not exist, and the double recovers by itself."""
    with Emulator(state=server.url) as double:
        assert 200 == create(double, "before")
        server.stop()
        refused = http.post(f"{double.url}/apps/coder/users/u/sessions/lost", json={}, timeout=60)
        health = http.get(f"{double.url}/_emulator/health", timeout=60)
        during = sessions(double)
        server.start()
        assert 200 == create(double, "after")
        assert 200 == http.get(f"{double.url}/_emulator/health", timeout=60).status_code
        after = sessions(double)

    assert 503 == refused.status_code
    assert "The state database postgresql://double@" in refused.text
    assert (503, "failing") == (health.status_code, health.json()["status"])
    assert {"before"} == during
    assert {"before", "after"} == after == stored(server.url)


@pytest.mark.slow
def test_an_unresponsive_server_counts_as_lost(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks, writes and closing end in bounded time."""
    monkeypatch.setattr(postgresql, "ANSWER_S", 0.5)
    monkeypatch.setattr(postgresql, "_CHECK_S", 0.1)

    async def work() -> list[str]:
        store = make_store(server.url)
        await store.open()
        ((backend,),) = await query(server.url, f"SELECT pid {BACKENDS}")
        processes.send(server.pid, signal.SIGSTOP)
        processes.send(backend, signal.SIGSTOP)
        try:
            with pytest.raises(StateError) as checked:
                await store.check()
            with pytest.raises(StateError) as written:
                await store.write(Change("tool", "1", {}))
            await store.close()
        finally:
            processes.send(backend, signal.SIGCONT)
            processes.send(server.pid, signal.SIGCONT)
        return [str(checked.value), str(written.value)]

    checked, written = asyncio.run(work())

    assert "does not answer" in checked
    assert "The state database" in written


@pytest.mark.slow
def test_an_unwritable_database_prevents_the_start(server: Server) -> None:
    """A user who can only use an existing schema is fine, but a schema must exist."""
    sql(server.url, "CREATE USER limited")
    limited = server.url.replace("double@", "limited@")
    denied = start_error(limited)
    sql(server.url, "CREATE SCHEMA agentdouble AUTHORIZATION limited")
    with Emulator(state=limited) as double:
        assert 200 == create(double, "first")
    sql(server.url, "ALTER DATABASE postgres SET default_transaction_read_only = on")
    read_only = start_error(server.url)

    assert "permission denied" in denied
    assert "read-only transaction" in read_only
