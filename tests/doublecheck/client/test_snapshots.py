"""Resets that keep, and snapshots, from a client."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator

import pytest

from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.errors import NotADoubleError, RefusedError
from doublecheck.results import Snapshot


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double() as target:
        yield target


@pytest.fixture
def client(target: Target) -> Iterator[Platform]:
    with Platform(target) as client:
        client.reset(keep=())
        yield client


def test_a_test_returns_to_a_snapshot(client: Platform) -> None:
    """Sessions of agents are as they were, those of the sandbox have ended."""
    session = client.create_session("echo", session_id="s", state={"a": 1})
    before = client.get_session("echo", "s")
    snapshot = client.snapshot()
    client.run(session, "hello")
    client.run_code("x = 1")
    client.clock.advance(hours=1)

    client.restore(snapshot)

    assert before == client.get_session("echo", "s")
    assert () == client.sessions()
    assert client.clock.now() < dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=30)


@pytest.mark.parametrize("keep", ["agent_sessions", ["agent_sessions", "clock"]])
def test_a_reset_keeps_what_it_is_told_to(client: Platform, keep: str | list[str]) -> None:
    """A part by its name, or several."""
    client.create_session("echo", session_id="s")
    client.run_code("1")

    client.reset(keep=keep)

    assert ("s",) == tuple(one.id for one in client.list_sessions("echo"))
    assert () == client.sessions()


def test_what_cannot_be_kept_or_returned_to_is_refused(client: Platform) -> None:
    """With what there is."""
    with pytest.raises(RefusedError, match="it can keep faults, clock, sessions, session_snap"):
        client.reset(keep=["everything"])
    with pytest.raises(RefusedError, match="has no snapshot 'snapshot-1'"):
        client.restore(Snapshot("snapshot-1", ()))


def test_an_async_platform_returns_too(target: Target) -> None:
    """The same methods."""

    async def use() -> tuple[str, ...]:
        async with AsyncPlatform(target) as platform:
            await platform.reset(keep=())
            snapshot = await platform.snapshot()
            await platform.create_session("echo", session_id="s")
            await platform.restore(snapshot)
            return tuple(one.id for one in await platform.list_sessions("echo"))

    assert () == asyncio.run(use())


def test_a_live_platform_has_no_snapshots() -> None:
    """Nor is it reset."""
    with Platform(Target(url="http://127.0.0.1:1", kind="live")) as live:
        for ask in (live.snapshot, lambda: live.restore(Snapshot("s", ()))):
            with pytest.raises(NotADoubleError):
                ask()
