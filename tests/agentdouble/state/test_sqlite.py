from __future__ import annotations

import asyncio
import datetime as dt
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import event

from agentdouble import Emulator
from agentdouble.control_plane.wire import stamp
from agentdouble.errors import SettingsError, StateError
from agentdouble.settings import Settings
from agentdouble.state import Change, Record, make_store
from agentdouble.state.sqlite import SqliteStore
from tests.agentdouble.calling import act, body_of, http, refusal, result


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def save(path: Path, **records: Record) -> None:
    async def do() -> None:
        store = make_store(url(path))
        await store.open()
        for id_, record in records.items():
            store.put(Change("tool", id_, record))
        await store.close()

    asyncio.run(do())


def saved(path: Path) -> dict[str, Record]:
    async def do() -> dict[str, Record]:
        store = make_store(url(path))
        await store.open()
        try:
            return dict(await store.load("tool"))
        finally:
            await store.close()

    return asyncio.run(do())


def test_records_outlive_their_store(tmp_path: Path) -> None:
    """Another store on the same file has them."""
    save(tmp_path / "a.db", one={"n": 1})
    save(tmp_path / "a.db", two={"n": 2})

    assert {"one": {"n": 1}, "two": {"n": 2}} == saved(tmp_path / "a.db")


def test_close_waits_for_the_write_of_a_cancelled_caller(tmp_path: Path) -> None:
    """The write is complete, and the file is not locked any more."""

    async def main() -> bool:
        store = make_store(url(tmp_path / "a.db"))
        await store.open()
        change = Change("tool", "one", {"text": "x" * 20_000_000})
        writing = asyncio.ensure_future(store.write(change))
        await asyncio.sleep(0)
        writing.cancel()
        await store.close()
        return writing.cancelled()

    assert asyncio.run(main())
    assert ["one"] == [*saved(tmp_path / "a.db")]


@pytest.mark.slow
def test_saved_records_survive_a_kill(tmp_path: Path) -> None:
    """SIGKILL right after saved() loses nothing and leaves no lock."""
    script = f"""
import asyncio, os, signal
from agentdouble.state import Change, make_store

async def main():
    store = make_store({url(tmp_path / "a.db")!r})
    await store.open()
    for number in range(20):
        store.put(Change("tool", str(number), {{"n": number}}))
        await store.saved()
    store.put(Change("tool", "never saved", {{}}))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=200, check=False)

    assert -9 == done.returncode
    assert {str(number): {"n": number} for number in range(20)} == saved(tmp_path / "a.db")


def damaged(path: Path) -> str:
    """Damage a page of a valid file and return the text the error names."""
    save(path, **{f"r{number}": {"text": "x" * 1000} for number in range(50)})
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    return "damaged"


def no_database(path: Path) -> str:
    path.write_text("This is a text, and a long one, so that it is clear that it is none. " * 20)
    return "file is not a database"


def another_format(path: Path) -> str:
    save(path, one={})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    return "has the format 99"


def a_folder(path: Path) -> str:
    path.mkdir()
    return "cannot be opened"


def in_no_folder(path: Path) -> str:
    path.parent.rmdir()
    return "cannot be opened"


def read_only(path: Path) -> str:
    if os.geteuid() == 0:
        pytest.skip("root writes to files that are read-only")
    save(path, one={})
    path.chmod(0o400)
    return "readonly"


@pytest.mark.parametrize(
    "spoil", [damaged, no_database, another_format, a_folder, in_no_folder, read_only]
)
def test_an_unusable_file_is_named(tmp_path: Path, spoil: object) -> None:
    """The double does not start, and its port is free again."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "a.db"
    assert callable(spoil)
    reason = spoil(path)
    double = Emulator(state=url(path))

    with pytest.raises(StateError) as caught:
        double.start()

    assert str(path) in str(caught.value)
    assert reason in str(caught.value)
    assert str(path) == caught.value.where
    Emulator(port=int(double.url.rpartition(":")[2])).stop()


@pytest.mark.slow
def test_a_file_belongs_to_one_double_at_a_time(tmp_path: Path) -> None:
    """A second one would take the first one's sessions for lost."""
    state = url(tmp_path / "a.db")
    with Emulator(state=state) as first:
        with pytest.raises(StateError, match="Another double uses it"):
            Emulator(state=state).start()
        assert 200 == http.get(f"{first.url}/ping").status_code

    with Emulator(state=state):
        pass


def test_writes_at_once_share_a_transaction(tmp_path: Path) -> None:
    """And what one caller cannot write fails for no other."""

    async def do() -> list[object]:
        store = make_store(url(tmp_path / "a.db"))
        await store.open()
        assert isinstance(store, SqliteStore)
        changes = [Change("tool", f"t{number}", {"n": number}) for number in range(8)]
        committed: list[object] = []
        event.listen(store._engine, "commit", committed.append)
        await asyncio.gather(*map(store.write, changes))
        transactions = len(committed)
        wrong = Change("tool", "wrong", {"a value that is not JSON": object()})
        outcomes = await asyncio.gather(
            *map(store.write, (Change("tool", "before", {}), wrong, Change("tool", "after", {}))),
            return_exceptions=True,
        )
        await store.close()
        return [transactions, *map(type, outcomes)]

    assert [2, type(None), TypeError, type(None)] == asyncio.run(do())
    assert {*(f"t{number}" for number in range(8)), "before", "after"} == set(
        saved(tmp_path / "a.db")
    )


def test_a_failed_write_is_an_error_and_is_retried(tmp_path: Path) -> None:
    """saved() never reports unsaved records as kept."""
    path = tmp_path / "a.db"

    async def do() -> str:
        store = make_store(url(path))
        await store.open()
        assert isinstance(store, SqliteStore)
        await store._connected(lambda it: it.exec_driver_sql("PRAGMA query_only = 1"))
        store.put(Change("tool", "1", {}))
        with pytest.raises(StateError) as caught:
            await store.saved()
        await store._connected(lambda it: it.exec_driver_sql("PRAGMA query_only = 0"))
        await store.saved()
        await store.close()
        return str(caught.value)

    message = asyncio.run(do())

    assert f"The state file {path} cannot be written: " in message
    assert {"1": {}} == saved(path)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("", "names no state"),
        ("sqlite", "names no state"),
        ("sqlite://", "names no state"),
        ("sqlite:///", "names no state"),
        ("sqlite:///:memory:", "names no state"),
        ("sqlite:///a.db?mode=ro", "names no state"),
        ("mysql://host/db", "names no state"),
        ("/tmp/a.db", "A file is named by sqlite:////tmp/a.db, not '/tmp/a.db'."),
        ("state.sqlite", "A file is named by sqlite:///state.sqlite,"),
        ("postgresql://", "PostgreSQL is named by postgresql://"),
        ("postgresql+asyncpg://user:secret@host/db", "PostgreSQL is named by postgresql://"),
    ],
)
def test_an_unsupported_url_is_refused(state: str, message: str) -> None:
    """The error names the setting and hides a password."""
    with pytest.raises(SettingsError, match=message) as caught:
        Settings.load(state=state)

    assert "state" == caught.value.key
    assert "secret" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["memory", "sqlite:///{}"])
def test_sqlalchemy_is_imported_only_if_needed(tmp_path: Path, state: str) -> None:
    """State in memory needs no database."""
    chosen = state.format(tmp_path / "a.db")
    script = f"""
import sys
from agentdouble import Emulator
with Emulator(state={chosen!r}):
    print("sqlalchemy" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=200
    )

    assert f"{chosen != 'memory'}\n" == done.stdout


TOOL = "t-sandbox"


@pytest.fixture
def state(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'state.db'}"


def test_tools_survive_a_restart(state: str) -> None:
    """This includes changes to the fixed tool, but no deleted tools."""
    with Emulator(state=state) as first:
        body = {"Name": "one", "ToolType": "All-in-one", "ClientToken": "c"}
        tool = act(first, "CreateTool", **body)["ToolId"]
        deleted_id = act(first, "CreateTool", Name="two", ToolType="CodeEnv")["ToolId"]
        act(first, "DeleteTool", ToolId=deleted_id)
        act(first, "UpdateTool", ToolId=TOOL, Description="changed")
        before = act(first, "ListTools")["Tools"]
        url = first.url

    with Emulator(state=state) as second:
        after = act(second, "ListTools")["Tools"]
        again = act(second, "CreateTool", **body)["ToolId"]
        ran = act(second, "InvokeTool", **{**body_of(second, "1"), "ToolId": tool})
        second_url = second.url

    assert str(before).replace(url, second_url) == str(after)
    assert (tool, tool) == (again, ran["ToolId"])


def test_sessions_end_with_the_double(state: str) -> None:
    """The error for an old session id says that the double was restarted."""
    with Emulator(state=state) as first:
        lived = result(first, "x = 1", "lived")["SessionId"]
        deleted = result(first, "1", "deleted")["SessionId"]
        act(first, "DeleteSession", SessionId=deleted)
        (before,) = http.get(f"{first.url}/_emulator/sessions").json()["ended"]

    with Emulator(state=state) as second:
        ended = http.get(f"{second.url}/_emulator/sessions").json()["ended"]
        error = refusal(second, "GetSession", ToolId=TOOL, SessionId=lived)
        new = result(second, "1", "lived")["SessionId"]

    restarted = ended[1]
    at = stamp(dt.datetime.fromisoformat(restarted["ended_at"]))
    assert [
        before,
        {**restarted, "SessionId": lived, "reason": "the double was restarted"},
    ] == ended
    assert (
        404,
        "InvalidResource.NotFound",
        f"The instance of session {lived!r} has ended: the double was restarted, at {at}.",
    ) == error
    assert new != lived
