from __future__ import annotations

import asyncio
import datetime as dt
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import freezegun
import pytest

from agentdouble import Clock, ledger
from agentdouble.errors import UnknownSessionError
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.settings import Settings

MINUTE = dt.timedelta(minutes=1)


@contextmanager
def within(clock: Clock, unknowns: dict[str, str] | None = None) -> Iterator[Instances]:
    with ledger.using(ledger.Ledger(unknowns)):
        yield Instances(clock, Settings.load(max_instances=100_000))


async def make(instances: Instances, count: int, **fields: Any) -> list[Instance]:
    return [await instances.get_or_create("t-1", f"u{n}", **fields) for n in range(count)]


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
