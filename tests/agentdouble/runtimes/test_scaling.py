from __future__ import annotations

import asyncio
import datetime as dt
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agentdouble.core.clock import Clock
from agentdouble.errors import RuntimeBusyError, RuntimeEndedError, RuntimeStartError
from agentdouble.processes.fork_server import processes
from agentdouble.runtimes import runtime as scaling
from agentdouble.runtimes.instance import RuntimeInstance
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.runtime import Runtime
from tests.agentdouble.runtimes import small

pytestmark = pytest.mark.anyio
PATIENCE_S = 30


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def runtimes(clock: Clock) -> AsyncIterator[RuntimeRegistry]:
    async with small.runtimes(clock) as runtimes:
        runtimes.ensure_min_instances()
        yield runtimes


async def create(runtimes: RuntimeRegistry, directory: Path, **scaling: Any) -> Runtime:
    return (await runtimes.create(small.table(directory / "telling", **scaling))).runtime


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""

    async def look() -> None:
        while not condition():  # noqa: ASYNC110 (nobody tells of it)
            await asyncio.sleep(0.002)

    await asyncio.wait_for(look(), PATIENCE_S)


def crash(instance: RuntimeInstance) -> None:
    assert instance.pid is not None
    processes.send(instance.pid, signal.SIGKILL)


class Held:
    """Leases that are held at the same time, each until it is released."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.given: list[tuple[str, RuntimeInstance]] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._go: dict[str, asyncio.Event] = {}

    def ask(self, name: str, session: str | None = None) -> asyncio.Task[None]:
        self._go[name] = asyncio.Event()
        self._tasks[name] = asyncio.ensure_future(self._hold(name, session))
        return self._tasks[name]

    async def let_go(self, name: str) -> None:
        self._go[name].set()
        await self._tasks[name]

    async def has(self, count: int) -> list[RuntimeInstance]:
        await until(lambda: len(self.given) >= count)
        return [instance for _, instance in self.given]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.given]

    async def _hold(self, name: str, session: str | None) -> None:
        async with self._runtime.lease(session) as instance:
            self.given.append((name, instance))
            await self._go[name].wait()


async def test_concurrent_requests_start_enough_instances(
    runtimes: RuntimeRegistry, tmp_path: Path
) -> None:
    """One for each max_concurrency requests, starting from none."""
    runtime = await create(runtimes, tmp_path, max_concurrency=2)
    before = runtime.instances
    async with AsyncExitStack() as stack:
        leases = [stack.enter_async_context(runtime.lease()) for _ in range(4)]
        granted = await asyncio.gather(*leases)
        in_flight = [instance.in_flight for instance in runtime.instances]

    assert () == before
    assert [2, 2] == in_flight
    assert set(runtime.instances) == set(granted)
    assert [0, 0] == [instance.in_flight for instance in runtime.instances]


async def test_excess_requests_wait_in_order(runtimes: RuntimeRegistry, tmp_path: Path) -> None:
    """First come, first served, by the existing instances."""
    leases = Held(await create(runtimes, tmp_path, max_concurrency=1, max_instances=1))
    for name in "abc":
        leases.ask(name)
        await asyncio.sleep(0)
    await leases.has(1)
    await leases.let_go("a")
    await leases.let_go("b")
    await leases.let_go("c")

    assert ["a", "b", "c"] == leases.names
    assert 1 == len({instance.name for _, instance in leases.given})


async def test_full_queue_and_long_waits_are_refused(
    runtimes: RuntimeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the time after which to retry."""
    monkeypatch.setattr(scaling, "QUEUE_LIMIT", 1)
    monkeypatch.setattr(scaling, "QUEUE_TIMEOUT_S", 0.05)
    runtime = await create(runtimes, tmp_path, max_concurrency=1, max_instances=1)
    leases = Held(runtime)
    leases.ask("a")
    await leases.has(1)
    late = leases.ask("b")
    await asyncio.sleep(0)
    with pytest.raises(RuntimeBusyError, match="1 requests wait for an instance already") as full:
        async with runtime.lease():
            pass
    with pytest.raises(RuntimeBusyError, match=r"none of its instances was free in 0\.05 s"):
        await late
    await leases.let_go("a")

    assert (1, "telling") == (full.value.retry_after_s, full.value.name)
    async with runtime.lease() as instance:
        assert 1 == instance.in_flight


async def test_disconnecting_client_leaves_the_instance_to_others(
    runtimes: RuntimeRegistry, tmp_path: Path
) -> None:
    """Both while it starts and while it serves; a started instance is kept."""
    runtime = await create(runtimes, tmp_path, max_concurrency=1, max_instances=1)
    leases = Held(runtime)
    cancelled = leases.ask("gone")
    await asyncio.sleep(0)
    cancelled.cancel()
    await until(lambda: runtime.instances)
    leases.ask("a")
    waiting = leases.ask("waiting")
    leases.ask("b")
    await asyncio.sleep(0)
    waiting.cancel()
    await leases.let_go("a")
    await leases.let_go("b")

    assert ["a", "b"] == leases.names
    assert [0] == [instance.in_flight for instance in runtime.instances]


async def test_session_stays_with_its_instance(runtimes: RuntimeRegistry, tmp_path: Path) -> None:
    """Even if it has to wait, until that instance ends."""
    runtime = await create(runtimes, tmp_path, max_concurrency=1, max_instances=2)
    leases = Held(runtime)
    leases.ask("a", "one")
    leases.ask("b", "two")
    first, second = await leases.has(2)
    await leases.let_go("b")
    leases.ask("again", "one")  # the other instance is free, and not its own
    await asyncio.sleep(0)
    waiting = len(leases.given)
    await leases.let_go("a")
    await leases.has(3)
    await leases.let_go("again")
    crash(first)
    await until(lambda: first not in runtime.instances)
    leases.ask("elsewhere", "one")
    await leases.has(4)
    await leases.let_go("elsewhere")

    assert 2 == waiting
    assert [first, second, first, second] == [instance for _, instance in leases.given]


async def test_idle_instances_end_on_the_double_s_clock(
    runtimes: RuntimeRegistry, clock: Clock, tmp_path: Path
) -> None:
    """Down to the minimum number, and never with a request in flight (HST-02)."""
    runtime = await create(runtimes, tmp_path, max_concurrency=1, idle_s=60, min_instances=1)
    leases = Held(runtime)
    leases.ask("long")
    await leases.has(1)
    for name in "ab":
        leases.ask(name)
    await leases.has(3)
    await leases.let_go("a")
    await leases.let_go("b")
    clock.move(dt.timedelta(seconds=30))
    await runtimes.settle()
    early = len(runtime.instances)
    clock.move(dt.timedelta(seconds=30))
    await runtimes.settle()
    busy = [instance.in_flight for instance in runtime.instances]
    await leases.let_go("long")
    clock.move(dt.timedelta(days=1))
    await runtimes.settle()

    assert (3, [1]) == (early, busy)
    assert 1 == len(runtime.instances)
    assert {"idle"} == {lease.ended_because for _, lease in leases.given} - {""}


async def test_minimum_instances_run_without_requests(
    runtimes: RuntimeRegistry, tmp_path: Path
) -> None:
    """From the start, and again after a crash."""
    runtime = await create(runtimes, tmp_path, min_instances=2)
    creating = runtime.status.word
    await until(lambda: len(runtime.instances) == 2)
    crash(runtime.instances[0])
    await until(lambda: len(runtime.instances) == 1)
    await until(lambda: len(runtime.instances) == 2)

    assert ("Creating", "Ready") == (creating, runtime.status.word)


async def test_crashed_or_unreachable_instance_is_not_reused(
    runtimes: RuntimeRegistry, tmp_path: Path
) -> None:
    """The next request gets another, at once."""
    runtime = await create(runtimes, tmp_path)
    async with runtime.lease() as crashed:
        crash(crashed)
        async with runtime.lease() as _:
            pass
        await until(lambda: not crashed.alive)
        async with runtime.lease() as second:
            runtime.retire(second, "crashed")
            async with runtime.lease() as third:
                pass

    await runtimes.settle()
    assert 3 == len({crashed, second, third})
    assert ["crashed", "crashed", ""] == [item.ended_because for item in (crashed, second, third)]
    assert (third,) == runtime.instances


async def test_program_that_fails_to_start_is_retried_later(
    runtimes: RuntimeRegistry, tmp_path: Path
) -> None:
    """Waiting callers get the reason; later ones wait for the next attempt, which may succeed."""
    runtime = await create(runtimes, tmp_path)
    broken = tmp_path / "telling" / "broken"
    broken.touch()
    for _ in range(2):
        with pytest.raises(RuntimeStartError, match="The runtime 'telling' did not start"):
            async with runtime.lease():
                pass
    status = runtime.status
    broken.unlink()
    async with runtime.lease() as instance:
        number = instance.name

    assert ("Error", True) == (status.word, "did not start" in status.message)
    assert ("telling-3", "Ready") == (number, runtime.status.word)


async def test_deletion_refuses_waiting_callers_and_leaves_nothing(
    runtimes: RuntimeRegistry, tmp_path: Path
) -> None:
    """While instances serve and others start."""
    runtime = await create(runtimes, tmp_path, max_concurrency=1)
    leases = Held(runtime)
    leases.ask("served")
    (serving,) = await leases.has(1)
    waiting = leases.ask("waiting")
    await asyncio.sleep(0)  # the second instance has begun to start
    await runtimes.delete(runtime.id)
    with pytest.raises(RuntimeEndedError, match="'telling' has ended: it was deleted"):
        await waiting
    with pytest.raises(RuntimeEndedError):
        async with runtime.lease():
            pass
    await leases.let_go("served")

    assert (False, "asked", ()) == (serving.alive, serving.ended_because, runtime.instances)
    assert ("Deleting", None) == (runtime.status.word, runtimes.find("telling"))
