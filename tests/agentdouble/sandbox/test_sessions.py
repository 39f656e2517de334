from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

import freezegun
import psutil
import pytest

from agentdouble import Clock, Emulator
from agentdouble.core import ledger
from agentdouble.errors import InstanceEndedError, TooManyInstancesError
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings
from tests.agentdouble.calling import (
    Begun,
    body_of,
    call,
    error_of,
    http,
    output,
    pids_of,
    result,
    run,
    text,
)

MINUTE = dt.timedelta(minutes=1)
SECOND = dt.timedelta(seconds=1)


def kernel(double: Emulator, session: str = "s1", **fields: object) -> psutil.Process:
    text(double, "1", session, **fields)
    return psutil.Process(pids_of(double, session)[0])


def session_id(double: Emulator, session: str = "s1", **fields: object) -> str:
    session_id: str = result(double, "1", session, **fields)["SessionId"]
    return session_id


def sessions(double: Emulator) -> list[str]:
    listed = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return [session["UserSessionId"] for session in listed]


@pytest.mark.slow
def test_an_instance_is_created_once_and_reused(double: Emulator) -> None:
    """SBX-01, SBX-02: the context persists, and executions are counted."""
    first = result(double, "x = 41")
    second = run(double, "x + 1")

    assert ["s1"] == sessions(double)
    assert (first["SessionId"], 2) == (
        second["data"]["session_id"],
        second["data"]["execution_count"],
    )
    assert [output("execute_result", data={"text/plain": "42"}, execution_count=2)] == second[
        "data"
    ]["outputs"]


def test_sessions_are_isolated(double: Emulator) -> None:
    """SBX-04: each session has its own process, names and files."""
    first = result(double, "x = 1; open('mine', 'w').close()", "one")
    two = result(double, "import os; print('x' in globals(), os.listdir())", "two")

    assert first["SessionId"] != two["SessionId"]
    assert '"text": "False []\\n"' in two["Result"]


def test_an_instance_lives_for_thirty_minutes(double: Emulator) -> None:
    """SBX-03: at 29:59 its state is still there."""
    run(double, "x = 1")

    double.clock.advance(30 * MINUTE - 30 * SECOND)

    assert "1\n" == text(double, "print(x)")


@pytest.fixture
def sleepless() -> Iterator[Emulator]:
    """A double whose sessions leave nothing at their end."""
    with Emulator(max_sleeping_sessions=0) as double:
        yield double


def test_an_instance_is_destroyed_after_thirty_minutes(sleepless: Emulator) -> None:
    """SBX-03: its process is gone when advance() returns; the next call starts fresh."""
    before = session_id(sleepless)
    process = kernel(sleepless)

    sleepless.clock.advance(30 * MINUTE)

    assert not process.is_running()
    assert [] == sessions(sleepless)
    after = run(sleepless, "1")["data"]
    assert before != after["session_id"]
    assert 1 == after["execution_count"]


def test_expiry_works_with_a_frozen_clock(sleepless: Emulator) -> None:
    """SBX-03 to the second, with freeze_time in the double's process."""
    start = dt.datetime(2040, 1, 1, tzinfo=dt.timezone.utc)
    with freezegun.freeze_time(start) as frozen:
        before = session_id(sleepless)
        process = kernel(sleepless)
        frozen.move_to(start + 30 * MINUTE - SECOND)
        alive = session_id(sleepless)

        frozen.move_to(start + 30 * MINUTE)
        process.wait(30)  # the reaper alone; nobody asks anything
        after = run(sleepless, "1")["data"]

    assert before == alive
    assert before != after["session_id"]
    assert 1 == after["execution_count"]


def test_a_request_destroys_an_expired_instance() -> None:
    """An expired session never answers, even before the reaper runs."""
    clock = Clock()

    async def rules() -> tuple[bool, bool]:
        with within(clock) as sessions:
            first = await sessions.get_or_create("t-1", "u")
            clock.move(30 * MINUTE - SECOND)
            same = await sessions.get_or_create("t-1", "u") is first
            clock.move(SECOND)
            other = await sessions.get_or_create("t-1", "u") is not first
            await sessions.close()
            return same, other

    with freezegun.freeze_time("2040-01-01", real_asyncio=True):
        assert (True, True) == asyncio.run(rules())


@contextmanager
def within(
    clock: Clock, unknowns: dict[str, str] | None = None, **settings: int
) -> Iterator[SandboxSessions]:
    with ledger.using(ledger.Ledger(unknowns)):
        yield SandboxSessions(clock, Settings.load(**settings))


def test_ttl_applies_only_when_creating_an_instance(double: Emulator) -> None:
    """A Ttl of 60 s ends it after 60 s; later values change nothing."""
    first = session_id(double, ttl_s=60)
    ignored = session_id(double, ttl_s=3600)
    double.clock.advance(60 * SECOND)

    assert first == ignored
    assert [] == sessions(double)


@pytest.mark.parametrize(
    ("unknowns", "by", "ttl_s", "is_kept"),
    [
        ({}, "UserSessionId", 1800, False),
        ({"U-TTL-EXTENDS": "sliding"}, "UserSessionId", None, True),
        ({"U-TTL-EXTENDS": "sliding"}, "SessionId", None, True),
        ({"U-TTL-REPEATED": "renews"}, "UserSessionId", 1800, True),
        ({"U-TTL-REPEATED": "renews"}, "SessionId", 1800, True),
        ({"U-TTL-REPEATED": "renews"}, "UserSessionId", None, False),
        ({"U-TTL-REPEATED": "renews"}, "UserSessionId", 60, False),
    ],
    ids=str,
)
def test_the_ledger_decides_if_use_extends_validity(
    unknowns: dict[str, str], by: str, ttl_s: int | None, is_kept: bool
) -> None:
    """A session used at 20 minutes is alive at 40 only if the ledger says so."""
    with Emulator(unknowns=unknowns) as double:
        first = session_id(double)
        double.clock.advance(20 * MINUTE)
        again = body_of(double, "1", ttl_s=ttl_s)
        if by == "SessionId":
            again = {**again, "UserSessionId": None, "SessionId": first}
        used = call(double, again).json()["Result"]["SessionId"]
        double.clock.advance(20 * MINUTE)
        alive = sessions(double) == ["s1"]

    assert (first, is_kept) == (used, alive)


def test_code_running_at_the_deadline_is_killed(double: Emulator) -> None:
    """U-TTL-DURING killed: the answer says that the session expired."""
    running = Begun(double, "s1", "print('never')")

    double.clock.advance(30 * MINUTE)

    inner = running.future.result(30)
    assert ("error", "KernelDied") == (
        inner["data"]["status"],
        inner["data"]["outputs"][0]["ename"],
    )
    assert "expired at " in inner["message"]


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["clock", "route"])
def test_code_may_finish_past_the_deadline_if_configured(answer: str) -> None:
    """U-TTL-DURING finishes: the session ends after the code."""
    with Emulator(unknowns={"U-TTL-DURING": "finishes"}, max_sleeping_sessions=0) as double:
        running = Begun(double, "s1", "print(1)")
        (process_id,) = pids_of(double)
        if answer == "clock":
            double.clock.advance(30 * MINUTE)
        else:
            http.post(f"{double.url}/_emulator/clock", json={"advance_s": 1800})
        running.go()
        inner = running.future.result(30)
        double.clock.advance(0 * SECOND)

        assert "1\n" == inner["data"]["outputs"][0]["text"]
        assert not psutil.pid_exists(process_id)


@pytest.mark.slow
def test_an_expired_session_stays_ended_if_configured() -> None:
    """U-TTL-AFTER error: the next call is refused and names the time."""
    with Emulator(unknowns={"U-TTL-AFTER": "error"}) as double:
        run(double, "1")
        double.clock.advance(30 * MINUTE)
        error = error_of(call(double, body_of(double, "1")))
        double.reset()
        after = run(double, "1")

    assert (404, "InvalidResource.NotFound") == (error["status"], error["Code"])
    assert "'s1' has ended: expired at " in error["Message"]
    assert after["success"]


def test_reset_destroys_every_instance(double: Emulator) -> None:
    """Processes are gone when reset() returns."""
    processes = [kernel(double, "one"), kernel(double, "two")]

    double.reset()

    assert [False, False] == [process.is_running() for process in processes]
    assert [] == sessions(double)


def test_reset_does_not_wait_for_running_code(double: Emulator) -> None:
    """The code is killed, and its caller gets the reason."""
    running = Begun(double, "s1", "1")

    double.reset()

    assert "the double was reset" in running.future.result(30)["message"]


def test_each_tool_has_its_own_instances() -> None:
    """The same session id with another tool is another session."""

    async def two() -> bool:
        with within(Clock()) as sessions:
            session = await sessions.get_or_create("t-1", "u")
            other = await sessions.get_or_create("t-2", "u")
            await sessions.close()
            return session.id != other.id

    assert asyncio.run(two())


def test_the_number_of_instances_is_limited() -> None:
    """A new one is refused until another ends."""

    async def limited() -> None:
        with within(Clock(), max_instances=1) as sessions:
            first = await sessions.get_or_create("t-1", "u")
            with pytest.raises(TooManyInstancesError, match="1 session instances are alive"):
                await sessions.get_or_create("t-1", "v")
            await sessions.destroy(first, "it may")
            await sessions.get_or_create("t-1", "v")
            await sessions.close()

    asyncio.run(limited())


def test_an_ended_session_runs_nothing() -> None:
    """A call on it gets the reason it ended."""

    async def ended() -> None:
        with within(Clock()) as sessions:
            session = await sessions.get_or_create("t-1", "u")
            await sessions.destroy(session, "no reason")
            with pytest.raises(InstanceEndedError, match="'u' has ended: no reason"):
                await sessions.execute(session, "1", "python3", 1)
            await sessions.close()

    asyncio.run(ended())
