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
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings

MINUTE = dt.timedelta(minutes=1)


@contextmanager
def within(clock: Clock, unknowns: dict[str, str] | None = None) -> Iterator[SandboxSessions]:
    with ledger.using(ledger.Ledger(unknowns)):
        yield SandboxSessions(clock, Settings.load(max_instances=100_000))


async def make(sessions: SandboxSessions, count: int, **fields: Any) -> list[SandboxSession]:
    return [await sessions.get_or_create("t-1", f"u{n}", **fields) for n in range(count)]


def test_a_ledger_change_applies_to_existing_instances() -> None:
    """A paused session past its deadline ends once paused time counts."""

    async def changed() -> tuple[int, int]:
        clock = Clock()
        in_force = ledger.Ledger({"U-TTL-PAUSED": "stops"})
        with ledger.using(in_force):
            sessions = SandboxSessions(clock, Settings.load())
            (session,) = await make(sessions, 1)
            sessions.pause(session)
            clock.move(31 * MINUTE)
            sessions.destroy_due()
            before = len(sessions)
            in_force.change({"U-TTL-PAUSED": "runs"})
            sessions.destroy_due()
            after = len(sessions)
            await sessions.close()
            return before, after

    assert (1, 0) == asyncio.run(changed())


def test_an_instance_is_found_only_by_its_tool() -> None:

    async def check() -> None:
        with within(Clock()) as sessions:
            session = await sessions.get_or_create("t-1", "u")
            other = await sessions.get_or_create("t-2", "u")
            assert session is await sessions.look_up(session.id, "t-1")
            with pytest.raises(UnknownSessionError):
                await sessions.look_up(session.id, "t-2")
            await sessions.destroy_of("t-1", "no reason")
            assert [other] == [*sessions.living()] == [*sessions.of_tool("t-2")]
            assert () == sessions.of_tool("t-1")
            await sessions.close()

    asyncio.run(check())
