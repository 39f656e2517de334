from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentdouble import Clock
from agentdouble.core import ledger
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


def test_a_ledger_change_applies_to_existing_instances() -> None:
    """A paused instance past its deadline ends once paused time counts."""

    async def changed() -> tuple[int, int]:
        clock = Clock()
        in_force = ledger.Ledger({"U-TTL-PAUSED": "stops"})
        with ledger.using(in_force):
            instances = Instances(clock, Settings.load())
            (instance,) = await make(instances, 1)
            instances.pause(instance)
            clock.move(31 * MINUTE)
            instances.destroy_due()
            before = len(instances)
            in_force.change({"U-TTL-PAUSED": "runs"})
            instances.destroy_due()
            after = len(instances)
            await instances.close()
            return before, after

    assert (1, 0) == asyncio.run(changed())


def test_an_instance_is_found_only_by_its_tool() -> None:

    async def check() -> None:
        with within(Clock()) as instances:
            instance = await instances.get_or_create("t-1", "u")
            other = await instances.get_or_create("t-2", "u")
            assert instance is await instances.look_up(instance.id, "t-1")
            with pytest.raises(UnknownSessionError):
                await instances.look_up(instance.id, "t-2")
            await instances.destroy_of("t-1", "no reason")
            assert [other] == [*instances.living()] == [*instances.of_tool("t-2")]
            assert () == instances.of_tool("t-1")
            await instances.close()

    asyncio.run(check())
