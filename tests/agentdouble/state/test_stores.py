from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agentdouble.state import Change, Record, Store, make_store

MakeStore = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Create a store of either kind, for tests that apply to both."""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql_url")
    else:
        url = "memory" if request.param == "memory" else f"sqlite:///{tmp_path / 'state.db'}"
    return lambda: make_store(url)


def after(make: MakeStore, change: Callable[[Store], None]) -> dict[str, dict[str, Record]]:
    """Return the contents of a store after a saved change."""

    async def do() -> dict[str, dict[str, Record]]:
        store = make()
        await store.open()
        change(store)
        await store.saved()
        loaded = {kind: dict(await store.load(kind)) for kind in ("tool", "session")}
        await store.close()
        return loaded

    return asyncio.run(do())


def test_records_are_kept_by_kind_and_id(make: MakeStore) -> None:
    """A record is any JSON object; kinds can share ids."""

    def change(store: Store) -> None:
        store.put(Change("tool", "1", {"text": "ü\n'\"", "none": None, "list": [1, {"a": True}]}))
        store.put(Change("session", "1", {"number": 1.5}))

    assert {
        "tool": {"1": {"text": "ü\n'\"", "none": None, "list": [1, {"a": True}]}},
        "session": {"1": {"number": 1.5}},
    } == after(make, change)


def test_the_last_change_wins(make: MakeStore) -> None:
    """It replaces, deletes or restores a record."""

    def change(store: Store) -> None:
        for text in ("first", "second"):
            store.put(Change("tool", "kept", {"text": text}))
        store.put(Change("tool", "gone", {}))
        store.put(Change("tool", "gone"))
        store.put(Change("tool", "back"))
        store.put(Change("tool", "back", {}))
        store.put(Change("tool", "never there"))

    assert {"kept": {"text": "second"}, "back": {}} == after(make, change)["tool"]


def test_concurrent_changes_are_all_saved(make: MakeStore) -> None:
    """Each caller waits for its own change; cancelling one affects no other."""

    async def do() -> set[str]:
        store = make()
        await store.open()

        async def save(number: int) -> None:
            store.put(Change("tool", str(number), {}))
            await store.saved()

        tasks = [asyncio.ensure_future(save(number)) for number in range(100)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        loaded = set(await store.load("tool"))
        await store.close()
        return loaded

    assert {str(number) for number in range(100)} == asyncio.run(do())


def test_a_single_record_is_read(make: MakeStore) -> None:
    """The latest put counts even before it is saved; an unknown id gives None."""

    async def do() -> list[Record | None]:
        store = make()
        await store.open()
        records: list[Record | None] = []
        for number in range(3):
            store.put(Change("tool", "1", {"n": number}))
            store.put(Change("session", "1", {"n": -1}))
            read = store.read("tool", "1"), store.read("tool", "2"), store.read("session", "1")
            records += await asyncio.gather(*read, store.saved())
            store.put(Change("tool", "2", {}))
            store.put(Change("tool", "2"))
        await store.close()
        return records

    expected = [[{"n": number}, None, {"n": -1}, None] for number in range(3)]
    assert [record for records in expected for record in records] == asyncio.run(do())
