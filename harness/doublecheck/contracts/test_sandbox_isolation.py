"""Checks that sessions, and users, do not interfere (SBX-04, SBX-12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from agentdouble import ledger
from doublecheck.client._sync.clock import PlatformClock
from doublecheck.contracts import sandbox_state
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.sandboxes import Sandbox, failure, printed, succeeded
from doublecheck.contracts.verdicts import Verdict

MOST_CALLS = 50
SOON_S = 60


@clause("SBX-04", writes=True)
def test_sessions_with_similar_names_are_separate(sandbox: Sandbox) -> None:
    """Names that differ in one character, in case, or at their ends have an instance each."""
    name = sandbox.session_id
    ids = (f"{name}-a", f"{name}-A", f"{name}_a", f"x{name}-a")

    _are_separate([replace(sandbox, session_id=one) for one in ids])


@clause("SBX-04", writes=True)
def test_sessions_do_not_see_each_other(sandbox: Sandbox) -> None:
    """No kind of state of one session is in another, and each keeps its own."""
    _keep_apart(sandbox, sandbox.with_session("other"))


@clause("SBX-04", writes=True)
def test_the_end_of_one_session_leaves_the_others(sandbox: Sandbox) -> None:
    """Neither its failures nor its deletion take anything with them; a new one inherits nothing."""
    other, new = sandbox.with_session("other"), sandbox.with_session("new")
    place = sandbox_state.leave(sandbox, "one")
    sandbox_state.leave(other, "other")

    failure(other.run("1 / 0"))
    _has_everything(sandbox, place)
    other.end()

    seen = sandbox_state.seen(new, place)
    assert sandbox_state.with_mark(None, seen) == seen
    _has_everything(sandbox, place)


@clause("SBX-04", writes=True)
def test_a_session_that_expires_leaves_the_others(sandbox: Sandbox, clock: PlatformClock) -> None:
    """It is destroyed alone."""
    succeeded(sandbox.run("kept = 41", ttl_s=None))
    succeeded(sandbox.with_session("other").run("pass", ttl_s=SOON_S))

    clock.advance(seconds=SOON_S + 1)

    assert "42\n" == printed(sandbox.run("print(kept + 1)", ttl_s=None))


@clause("SBX-04", writes=True)
def test_sessions_work_at_once(sandbox: Sandbox) -> None:
    """Each call is answered with what its own code printed, while another one runs."""
    other = sandbox.with_session("other")
    for one in (sandbox, other):
        one.run("import time")

    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(sandbox.run, "time.sleep(0.15); print('slow')")
        meanwhile = [printed(other.run(f"print({n})")) for n in _until(slow.done)]

    assert "slow\n" == printed(slow.result())
    assert [f"{n}\n" for n in range(len(meanwhile))] == meanwhile


@clause("SBX-12", writes=True)
def test_users_and_sessions_with_similar_names_are_separate(sandbox: Sandbox) -> None:
    """Users that differ in one character, or in case; sessions of one user; neither just joined."""
    name = sandbox.session_id
    users = {"ab": name, "aB": name, "ac": name, "a": f"b{name}"}
    named = [replace(sandbox, user_id=f"dc-{user}", session_id=id_) for user, id_ in users.items()]

    _are_separate([*named, named[0].with_session("2")])


@clause("SBX-12", writes=True)
def test_users_do_not_see_each_other(sandbox: Sandbox) -> None:
    """No kind of state of one user's session is in another user's, and each keeps its own."""
    _keep_apart(sandbox, sandbox.with_user("somebody-else"))


@clause("SBX-12", writes=True)
def test_the_end_of_a_session_leaves_those_of_other_users(sandbox: Sandbox) -> None:
    """A user's session ends alone: not the others' of that name, and not the user's others."""
    theirs, another = sandbox.with_user("somebody-else"), sandbox.with_session("2")
    _need_names(sandbox, theirs)
    for one in (sandbox, theirs, another):
        succeeded(one.run("kept = 41"))

    sandbox.end()

    assert ["42\n", "42\n"] == [printed(one.run("print(kept + 1)")) for one in (theirs, another)]


def _are_separate(sandboxes: Sequence[Sandbox]) -> None:
    """Fail unless each has an instance of its own, and keeps what it was given."""
    _need_names(*sandboxes)
    ids = [
        succeeded(one.run(f"kept = {number}")).session_id for number, one in enumerate(sandboxes)
    ]

    kept = [printed(one.run("print(kept)")) for one in sandboxes]

    assert [f"{number}\n" for number in range(len(sandboxes))] == kept
    assert len(ids) == len(set(ids)), ids


def _keep_apart(one: Sandbox, other: Sandbox) -> None:
    """Fail if a kind of state of one is in the other, before or after the other has its own."""
    _need_names(one, other)
    place = sandbox_state.leave(one, "one")
    seen = sandbox_state.seen(other, place)
    assert sandbox_state.with_mark(None, seen) == seen
    sandbox_state.leave(other, "other")

    seen = sandbox_state.seen(other, place)
    assert sandbox_state.with_mark("other", seen) == seen
    _has_everything(one, place)


def _has_everything(sandbox: Sandbox, place: sandbox_state.Place) -> None:
    seen = sandbox_state.seen(sandbox, place)
    assert sandbox_state.with_mark("one", seen) == seen


def _need_names(*sandboxes: Sandbox) -> None:
    """Skip where it was chosen that a session is named by its id alone."""
    named_alike = len({one.name for one in sandboxes}) < len(sandboxes)
    if named_alike and ledger.choose("U-USER-SESSION-ID") == "session":
        pytest.skip(
            f"{Verdict.NOT_OBSERVABLE.value}: sessions are named by their ids alone "
            "(U-USER-SESSION-ID)"
        )


def _until(done: Callable[[], bool]) -> Iterator[int]:
    """Count calls until something is done; at least one."""
    for number in range(MOST_CALLS):
        yield number
        if done():
            return
