from __future__ import annotations

import asyncio
import datetime as dt
import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import freezegun
import pytest

from agentdouble import Clock, ledger
from agentdouble.errors import InstanceEndedError, UnknownSessionError
from agentdouble.sandbox import ended_instances
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.settings import Settings

MINUTE = dt.timedelta(minutes=1)
SECOND = dt.timedelta(seconds=1)


@contextmanager
def within(clock: Clock, unknowns: dict[str, str] | None = None) -> Iterator[Instances]:
    with ledger.using(ledger.Ledger(unknowns)):
        yield Instances(clock, Settings.load(max_instances=100_000))


async def make(instances: Instances, count: int, **fields: Any) -> list[Instance]:
    return [await instances.get_or_create("t-1", f"u{n}", **fields) for n in range(count)]


def steps(call: Callable[[], Any]) -> int:
    """Return how many lines and calls of Python one call takes."""
    count = 0

    def tracer(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return tracer

    before = sys.gettrace()
    gc.disable()  # what other tests have left is finalized in steps, too
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def run_once(coroutine: Any) -> Callable[[], Any]:
    """Return a call that runs a coroutine which never waits."""

    def run() -> Any:
        with pytest.raises(StopIteration):
            coroutine.send(None)

    return run


CALLS: dict[str, Callable[[Instances, Instance], Any]] = {
    "get_or_create a living one": lambda i, one: i.get_or_create("t-1", one.key.user_session_id),
    "get_or_create a new one": lambda i, one: i.get_or_create("t-1", "new"),
    "find": lambda i, one: i.find("t-1", one.key.user_session_id),
    "look_up by id": lambda i, one: i.look_up(one.id, "t-1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_call_takes_as_many_steps_among_hundreds_as_among_ten(call: str) -> None:
    """Nothing is looked through: not the living ones, not those that have ended."""

    async def counted(count: int) -> int:
        with within(Clock()) as instances:
            for one in await make(instances, count):
                await instances.destroy(one, "it may")
            living = await make(instances, count)
            taken = steps(run_once(CALLS[call](instances, living[count // 2])))
            await instances.close()
            return taken

    few, many = asyncio.run(counted(10)), asyncio.run(counted(300))

    assert abs(many - few) < 20 + few // 10


@pytest.mark.slow
def test_the_reaper_takes_no_more_steps_for_hundreds_that_are_not_due() -> None:
    """It looks four times a second."""

    async def counted(count: int) -> int:
        with within(Clock()) as instances:
            await make(instances, count)
            taken = steps(instances.destroy_due)
            await instances.close()
            return taken

    assert asyncio.run(counted(10)) == asyncio.run(counted(300))


@pytest.mark.parametrize("unknown", ["U-TTL-PAUSED", "U-TTL-DURING"])
def test_those_past_their_deadline_that_live_on_cost_nobody_anything(unknown: str) -> None:
    """Hundreds are paused, or run code, and their deadlines have passed."""
    answer = {"U-TTL-PAUSED": "stops", "U-TTL-DURING": "finishes"}[unknown]

    async def counted(count: int) -> int:
        clock = Clock()
        with within(clock, {unknown: answer}) as instances, ExitStack() as working:
            for one in await make(instances, count):
                if unknown == "U-TTL-PAUSED":
                    instances.pause(one)
                else:
                    working.enter_context(one._working())
            clock.move(31 * MINUTE)
            instances.destroy_due()
            taken = steps(instances.destroy_due)
            assert count == len(instances)
            await instances.close()
            return taken

    assert asyncio.run(counted(10)) == asyncio.run(counted(300))


@pytest.mark.slow
def test_whatever_moves_deadlines_each_is_due_when_it_says_so() -> None:
    """Compared with looking through all, in a random order of uses, ttls, pauses and ends."""
    chance = random.Random(7)
    unknowns = {"U-TTL-PAUSED": "stops", "U-TTL-DURING": "finishes", "U-TTL-EXTENDS": "sliding"}

    async def compared() -> None:
        clock = Clock()
        with (
            freezegun.freeze_time("2040-01-01", real_asyncio=True) as frozen,
            within(clock, unknowns) as instances,
        ):
            working: dict[str, Any] = {}

            async def step(number: int, one: Instance) -> None:
                if number == 0:
                    instances.use(one)
                elif number == 1:
                    instances.set_ttl(one, dt.timedelta(seconds=chance.randrange(200)))
                elif number == 2:
                    instances.pause(one)
                elif number == 3:
                    instances.resume(one)
                elif number == 4 and one.id not in working:
                    working[one.id] = one._working()
                    working[one.id].__enter__()
                elif number == 5 and one.id in working:
                    working.pop(one.id).__exit__(None, None, None)
                elif number == 6:
                    clock.move(dt.timedelta(seconds=chance.randrange(30)))
                elif number == 7:
                    frozen.tick(dt.timedelta(seconds=chance.randrange(-5, 10)))
                elif number == 8:
                    await instances.destroy(one, "it may")

            for turn in range(3000):
                await instances.get_or_create("t-1", f"u{turn % 40}", chance.randrange(1, 300))
                await step(chance.randrange(9), chance.choice(instances.living()))
                now = clock.now()
                expected = [i.id for i in instances.living() if not i.is_due(now)]
                instances.destroy_due()
                assert expected == [i.id for i in instances.living()]
            await instances.close()

    asyncio.run(compared())


def test_another_answer_of_the_ledger_holds_for_those_that_live_on_already() -> None:
    """Who is past the deadline and paused ends once the validity of paused ones runs."""

    async def changed() -> tuple[int, int]:
        clock = Clock()
        in_force = ledger.Ledger({"U-TTL-PAUSED": "stops"})
        with ledger.using(in_force):
            instances = Instances(clock, Settings.load())
            (one,) = await make(instances, 1)
            instances.pause(one)
            clock.move(31 * MINUTE)
            instances.destroy_due()
            before = len(instances)
            in_force.change({"U-TTL-PAUSED": "runs"})
            instances.destroy_due()
            after = len(instances)
            await instances.close()
            return before, after

    assert (1, 0) == asyncio.run(changed())


def test_what_comes_and_goes_leaves_nothing_in_the_heap() -> None:
    """Hundreds that ended long before their deadlines take no memory."""

    async def left() -> int:
        with within(Clock()) as instances:
            for one in await make(instances, 300):
                await instances.destroy(one, "it may")
            instances._living.compact()
            await instances.close()
            return len(instances._living._heap)

    assert asyncio.run(left()) < 100


def test_an_instance_is_found_by_the_tool_that_it_is_of_alone() -> None:
    """By id with another tool there is none; a tool's are its own."""

    async def found() -> None:
        with within(Clock()) as instances:
            one = await instances.get_or_create("t-1", "u")
            other = await instances.get_or_create("t-2", "u")
            assert one is await instances.look_up(one.id, "t-1")
            with pytest.raises(UnknownSessionError):
                await instances.look_up(one.id, "t-2")
            await instances.destroy_of("t-1", "no reason")
            assert [other] == [*instances.living()] == [*instances.of_tool("t-2")]
            assert () == instances.of_tool("t-1")
            await instances.close()

    asyncio.run(found())


def test_of_the_ended_ones_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their keys; a session that had another one since is known by that."""
    monkeypatch.setattr(ended_instances, "REMEMBERED", 3)
    monkeypatch.setattr(ended_instances, "LOGS_KEPT", 1)

    async def remembered() -> None:
        with within(Clock(), {"U-TTL-AFTER": "error"}) as instances:
            keys = []
            for name in ("a", "b", "c", "d"):
                one = await instances.get_or_create("t-1", name)
                keys.append(one.id)
                await instances.destroy(one, f"as {name}")
            assert keys[1:] == [one.id for one in instances.ended()]
            assert [None, None] == [one.log for one in instances.ended()[:2]]
            assert instances.ended()[2].log is not None
            with pytest.raises(InstanceEndedError, match="as b"):
                await instances.get_or_create("t-1", "b")
            assert "a" == (await instances.get_or_create("t-1", "a")).key.user_session_id
            await instances.close()

    asyncio.run(remembered())
