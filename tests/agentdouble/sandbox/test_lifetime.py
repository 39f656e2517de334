"""A session's validity, without any session: every alternative of the ledger about it."""

from __future__ import annotations

import contextlib
import datetime as dt

import pytest

from agentdouble.core import ledger
from agentdouble.core.ledger import Ledger
from agentdouble.sandbox.lifetime import Lifetime, may_begin_again

T0 = dt.datetime(2040, 1, 1, tzinfo=dt.timezone.utc)
TTL = dt.timedelta(minutes=30)
OTHER = dt.timedelta(minutes=60)


def at(minutes: float) -> dt.datetime:
    return T0 + dt.timedelta(minutes=minutes)


def used(ttl: dt.timedelta | None) -> Lifetime:
    """Return a lifetime that was used after 20 minutes."""
    lifetime = Lifetime(T0, TTL)
    lifetime.renew(at(20), ttl)
    return lifetime


def paused() -> Lifetime:
    """Return a lifetime that was paused from minute 10 to minute 25."""
    lifetime = Lifetime(T0, TTL)
    lifetime.pause(at(10))
    lifetime.resume(at(25))
    return lifetime


# For each alternative: when it is chosen, a lifetime has this deadline, in minutes.
DEADLINES = {
    ("U-TTL-EXTENDS", "absolute"): [(lambda: used(None), 30), (lambda: used(OTHER), 30)],
    ("U-TTL-EXTENDS", "sliding"): [(lambda: used(None), 50), (lambda: used(OTHER), 50)],
    ("U-TTL-REPEATED", "ignored"): [(lambda: used(OTHER), 30)],
    ("U-TTL-REPEATED", "renews"): [(lambda: used(OTHER), 80), (lambda: used(None), 30)],
    ("U-TTL-PAUSED", "runs"): [(paused, 30)],
    ("U-TTL-PAUSED", "stops"): [(paused, 45)],
}
# For each alternative: whether a lifetime past its deadline is due while it is paused or at work.
DUE = {
    ("U-TTL-DURING", "killed"): {"at work": True, "paused": True},
    ("U-TTL-DURING", "finishes"): {"at work": False, "paused": True},
    ("U-TTL-PAUSED", "runs"): {"at work": True, "paused": True},
    ("U-TTL-PAUSED", "stops"): {"at work": True, "paused": False},
}
AFTER = {("U-TTL-AFTER", "new-instance"): True, ("U-TTL-AFTER", "error"): False}


def test_every_alternative_about_validity_is_in_a_table() -> None:
    known = {
        (unknown.id, answer.name)
        for unknown in ledger.unknowns().values()
        if unknown.id.startswith("U-TTL-")
        for answer in (unknown.default, *unknown.alternatives)
    }

    assert known == {*DEADLINES, *DUE, *AFTER}


@pytest.mark.parametrize("choice", DEADLINES, ids=" ".join)
def test_the_deadline_follows_the_ledger(choice: tuple[str, str]) -> None:
    with ledger.using(Ledger(dict([choice]))):
        for make, minutes in DEADLINES[choice]:
            lifetime = make()
            due = [lifetime.is_due(at(minute)) for minute in (minutes - 0.01, minutes)]

            assert (at(minutes), [False, True]) == (lifetime.deadline, due)


@pytest.mark.parametrize("choice", DUE, ids=" ".join)
def test_the_end_is_deferred_only_if_the_ledger_says_so(choice: tuple[str, str]) -> None:
    """Afterwards it is due in any case."""
    with ledger.using(Ledger(dict([choice]))):
        busy, halted = Lifetime(T0, TTL), Lifetime(T0, TTL)
        halted.pause(at(30))
        with busy.working():
            due = {"at work": busy.is_due(at(31)), "paused": halted.is_due(at(31))}
        halted.resume(at(30))

    assert DUE[choice] == due
    assert busy.is_due(at(31))
    assert halted.is_due(at(31))


@pytest.mark.parametrize("choice", AFTER, ids=" ".join)
def test_the_ledger_decides_if_an_ended_session_may_begin_again(choice: tuple[str, str]) -> None:
    with ledger.using(Ledger(dict([choice]))):
        assert AFTER[choice] is may_begin_again()


def test_only_questions_that_matter_are_relied_on() -> None:
    """A session that is not due, paused or used relies on no answer about that."""
    with ledger.using(Ledger()) as relied_on:
        lifetime = Lifetime(T0, TTL)
        lifetime.set_ttl(at(1), OTHER)
        lifetime.resume(at(2))
        lifetime.is_due(at(61))
        assert set() == relied_on

        lifetime.renew(at(2))
        assert {"U-TTL-EXTENDS"} == relied_on


def test_a_renewed_lifetime_keeps_its_new_length() -> None:
    with ledger.using(Ledger({"U-TTL-REPEATED": "renews", "U-TTL-EXTENDS": "sliding"})):
        lifetime = Lifetime(T0, TTL)
        moved = [lifetime.renew(at(1), OTHER), lifetime.renew(at(2))]

    assert ([True, True], at(62)) == (moved, lifetime.deadline)


def test_a_second_pause_or_resume_changes_nothing() -> None:
    with ledger.using(Ledger({"U-TTL-PAUSED": "stops"})):
        lifetime = Lifetime(T0, TTL)
        lifetime.pause(at(5))
        lifetime.pause(at(9))
        states = [lifetime.state]
        lifetime.resume(at(10))
        lifetime.resume(at(20))
        states.append(lifetime.state)

    assert (["paused", "active"], at(35)) == (states, lifetime.deadline)


def test_work_counts_until_the_last_has_ended() -> None:
    lifetime = Lifetime(T0, TTL)
    with contextlib.suppress(ZeroDivisionError), lifetime.working():
        with lifetime.working():
            pass
        during = lifetime.at_work
        raise ZeroDivisionError

    assert (True, False) == (during, lifetime.at_work)


def test_a_lifetime_beyond_the_calendar_changes_nothing() -> None:
    lifetime = Lifetime(T0, TTL)
    with pytest.raises(OverflowError):
        lifetime.set_ttl(T0, dt.timedelta.max)

    assert (TTL, at(30)) == (lifetime.ttl, lifetime.deadline)


def test_an_expired_lifetime_is_due_at_once() -> None:
    lifetime = Lifetime(T0, TTL)
    lifetime.expire(at(3))

    assert lifetime.is_due(at(3))
