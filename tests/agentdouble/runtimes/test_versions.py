from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.errors import (
    DeclarationError,
    RuntimeNameError,
    RuntimeStartError,
    UnknownVersionError,
)
from agentdouble.runtimes import runtime as runtime_module
from agentdouble.runtimes.definition import Table, Version
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.runtime import Runtime
from tests.agentdouble.runtimes import small
from tests.agentdouble.runtimes.test_scaling import PATIENCE_S, Held, until

pytestmark = [pytest.mark.anyio, pytest.mark.smoke]


@pytest.fixture
async def runtimes() -> AsyncIterator[RuntimeRegistry]:
    async with small.runtimes() as runtimes:
        yield runtimes


@pytest.fixture
def first(tmp_path: Path) -> Table:
    return small.table(tmp_path / "telling", max_concurrency=1)


async def create(runtimes: RuntimeRegistry, table: Table) -> Runtime:
    return (await runtimes.create(table)).runtime


async def update(
    runtimes: RuntimeRegistry, runtime: Runtime, says: str, *, release: bool = True
) -> Version:
    change = {"environment": {"SAYS": says}}
    return await runtimes.update(runtime.id, change, release=release)


async def served_by(runtime: Runtime) -> int:
    async with runtime.lease() as instance:
        return instance.version


async def test_new_version_takes_over_once_ready(runtimes: RuntimeRegistry, first: Table) -> None:
    """The old one serves until then and finishes its requests: none is lost."""
    runtime = await create(runtimes, first)
    leases = Held(runtime)
    leases.ask("old", "session")
    (old,) = await leases.has(1)
    second = await update(runtimes, runtime, "two")
    during = (runtime.status.word, runtime.version.number)
    await runtime.deployed()
    draining = (old.state, old.alive, runtime.version)
    leases.ask("new", "session")
    _, new = await leases.has(2)
    await leases.let_go("old")
    await runtimes.settle()

    assert ("Updating", 1) == during
    assert ("draining", True, second) == draining
    assert (2, second.definition) == (new.version, new.definition)
    assert ("replaced", False, (new,)) == (old.ended_because, old.alive, runtime.instances)
    await leases.let_go("new")


async def test_new_version_is_current_at_once_without_instances(
    runtimes: RuntimeRegistry, first: Table
) -> None:
    """Also while the old one starts: waiting callers get the new one."""
    runtime = await create(runtimes, first)
    await update(runtimes, runtime, "two")
    leases = Held(runtime)
    leases.ask("a")
    await asyncio.sleep(0)
    await update(runtimes, runtime, "three")
    (instance,) = await leases.has(1)
    await leases.let_go("a")

    assert ("Ready", 3, 3) == (runtime.status.word, runtime.version.number, instance.version)


async def test_version_that_fails_to_start_leaves_the_old_one_serving(
    runtimes: RuntimeRegistry, first: Table, tmp_path: Path
) -> None:
    """The status says why, until another version is deployed."""
    runtime = await create(runtimes, first)
    await served_by(runtime)
    wrong = small.table(tmp_path / "wrong", "import nothing")
    await runtimes.update(runtime.id, {"directory": wrong["directory"]})
    with pytest.raises(RuntimeStartError):
        await runtime.deployed()
    status, served = runtime.status, await served_by(runtime)
    await runtimes.update(runtime.id, {"directory": first["directory"]})
    await runtime.deployed()

    assert "Error" == status.word
    assert status.message.startswith(
        "Version 1 stays in force. The runtime 'telling' did not start"
    )
    assert (1, 3) == (served, await served_by(runtime))


async def test_older_versions_can_be_released_again(
    runtimes: RuntimeRegistry, first: Table
) -> None:
    """They keep their numbers; an unknown version is refused, and nothing changes."""
    runtime = await create(runtimes, first)
    await served_by(runtime)
    await update(runtimes, runtime, "two", release=False)
    unreleased = (runtime.status.word, await served_by(runtime))
    await runtimes.release(runtime.id, 2)
    releasing = runtime.status.word
    await runtime.deployed()
    after = await served_by(runtime)
    await runtimes.release(runtime.id, 1)
    await runtime.deployed()
    with pytest.raises(UnknownVersionError, match="has no version 3; it has 1 to 2"):
        await runtimes.release(runtime.id, 3)

    assert (("UnReleased", 1), "Releasing", 2) == (unreleased, releasing, after)
    assert (1, [1, 2]) == (await served_by(runtime), [entry.number for entry in runtime.versions])


async def test_draining_has_a_time_limit(
    runtimes: RuntimeRegistry, first: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that takes longer loses its instance."""
    monkeypatch.setattr(runtime_module, "DRAIN_TIMEOUT_S", 0.01)
    runtime = await create(runtimes, first)
    leases = Held(runtime)
    leases.ask("endless")
    (old,) = await leases.has(1)
    await update(runtimes, runtime, "two")
    await until(lambda: not old.alive)
    await leases.let_go("endless")

    assert ("ended", "replaced") == (old.state, old.ended_because)


async def test_number_of_versions_is_limited(
    runtimes: RuntimeRegistry, first: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are dropped, the current one stays."""
    monkeypatch.setattr(runtime_module, "VERSIONS_KEPT", 3)
    runtime = await create(runtimes, first)
    for says in "abcd":
        await update(runtimes, runtime, says, release=False)

    assert [1, 4, 5] == [version.number for version in runtime.versions]
    assert 1 == runtime.version.number


async def test_runtime_names_are_unique(first: Table) -> None:
    """Applications of the double count too; a name is a path segment."""
    async with small.runtimes(reserved=["hosted"]) as runtimes:
        managed = await runtimes.create(first)
        attempts: list[tuple[Any, str]] = [
            (runtimes.create(first), "there is one of that name"),
            (runtimes.create({**first, "name": "hosted"}), "an application of this process"),
            (runtimes.update(managed.id, {"name": "other"}), "the runtime is called 'telling'"),
            (runtimes.create({**first, "name": "a/b"}), "should match pattern"),
        ]
        for attempt, reason in attempts:
            with pytest.raises((RuntimeNameError, DeclarationError), match=reason):
                await attempt

        assert managed.runtime is runtimes.find("telling")


async def test_version_changes_lose_no_request(tmp_path: Path) -> None:
    """Each is answered by the old or the new version, the last by the newest."""
    table = small.table(tmp_path / "telling", environment={"SAYS": "0"}, max_concurrency=2)
    numbers: list[int] = []
    statuses: set[int] = set()
    with Emulator(runtimes=[table]) as double:
        async with httpx.AsyncClient(timeout=PATIENCE_S, verify=False) as client:
            go_on = asyncio.Event()

            async def ask() -> None:
                while not go_on.is_set():
                    answer = await client.get(f"{double.url}/runtimes/telling/")
                    numbers.append(answer.status_code)
                    statuses.add(answer.status_code)

            requests = [asyncio.ensure_future(ask()) for _ in range(4)]
            for says in ("1", "2"):
                numbers.clear()
                await until(lambda: len(numbers) > 4)
                change = {"environment": {"SAYS": says}}
                await asyncio.to_thread(double.runtimes.update, "telling", **change)
            go_on.set()
            await asyncio.gather(*requests)
            last = await client.get(f"{double.url}/runtimes/telling/")
            printed = double.runtimes.logs("telling")

    assert {200} == statuses, printed
    assert "2" == last.text.split()[-1]
