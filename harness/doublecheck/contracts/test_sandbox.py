"""Checks of the life of session instances: made, kept and ended (SBX-01 to SBX-03)."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from doublecheck.client._sync.clock import PlatformClock
from doublecheck.contracts import sandbox_state
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.sandboxes import (
    COMMAND,
    JAVASCRIPT,
    PYTHON,
    TTL_S,
    Sandbox,
    failure,
    printed,
    succeeded,
)
from doublecheck.errors import RefusedError

if TYPE_CHECKING:
    from doublecheck.values.sandbox import BashResult, CodeResult

FIRSTS = {
    PYTHON: "x = globals().get('x', 0) + 1; print(x)",
    JAVASCRIPT: "globalThis.x = (globalThis.x ?? 0) + 1; console.log(x);",
    COMMAND: "echo 1",
}
BEFORE_THE_END = dt.timedelta(minutes=29, seconds=59)
PAST_IT = dt.timedelta(seconds=2)


@clause("SBX-01", writes=True)
def test_the_first_call_creates_the_instance(sandbox: Sandbox) -> None:
    """A new session id runs code of either language, or a command, once and in a new instance."""
    ids = set()

    for language, code in FIRSTS.items():
        ran = _run(sandbox.with_session(f"Another_one-{language}"), code, language)

        assert "1\n" == ran.stdout
        assert re.fullmatch(r"s-[\w-]+", ran.session_id), ran.session_id
        ids.add(ran.session_id)
    assert len(FIRSTS) == len(ids), ids


@clause("SBX-01", writes=True)
def test_a_new_instance_has_no_state(sandbox: Sandbox) -> None:
    """The names that checks use are free, and the first execution is the first one."""
    first = sandbox.run("print([one for one in ('kept', 'x', 'count') if one in globals()])")

    assert ("[]\n", 1) == (printed(first), first.execution_count)


@clause("SBX-02", writes=True)
def test_the_same_session_is_reused(sandbox: Sandbox) -> None:
    """Later executions find every kind of state, also after an error, JavaScript and a command."""
    first = sandbox.run("pass")
    place = sandbox_state.leave(sandbox, "one")

    failure(sandbox.run("1 / 0"))
    failure(sandbox.run("throw new Error('on purpose')", JAVASCRIPT))
    ran = sandbox.exec_bash("true")

    for _ in range(2):
        seen = sandbox_state.seen(sandbox, place)
        assert sandbox_state.with_mark("one", seen) == seen
    for number in ("1\n", "2\n", "3\n"):
        counts = [sandbox.run(FIRSTS[name], name) for name in (PYTHON, JAVASCRIPT)]
        assert [number] * 2 == [printed(one) for one in counts]
        assert {first.session_id} == {ran.session_id, *(one.session_id for one in counts)}


@clause("SBX-03", writes=True)
def test_the_instance_is_destroyed_after_thirty_minutes(
    sandbox: Sandbox, clock: PlatformClock
) -> None:
    """A second before that an instance has its state; one that is not used then ends.

    Whatever created it, a second later its session has a new instance without state, or is refused
    (U-TTL-EXTENDS, U-TTL-AFTER).
    """
    used, unused = sandbox, sandbox.with_session("unused")
    more = {language: sandbox.with_session(language) for language in (JAVASCRIPT, COMMAND)}
    places = [sandbox_state.leave(one, "one", ttl_s=None) for one in (used, unused)]
    firsts = {
        name: _run(one, FIRSTS[name], name, ttl_s=None).session_id for name, one in more.items()
    }
    firsts[""] = succeeded(unused.run("pass", ttl_s=None)).session_id

    clock.advance(BEFORE_THE_END)
    seen = sandbox_state.seen(used, places[0], ttl_s=None)
    assert sandbox_state.with_mark("one", seen) == seen
    clock.advance(PAST_IT)

    _is_gone(more[JAVASCRIPT], JAVASCRIPT, firsts[JAVASCRIPT])
    _is_gone(more[COMMAND], COMMAND, firsts[COMMAND])
    if _is_gone(unused, PYTHON, firsts[""]):
        seen = sandbox_state.seen(unused, places[1], ttl_s=None)
        assert sandbox_state.with_mark(None, seen) == seen


def _run(
    sandbox: Sandbox, code: str, language: str, *, ttl_s: int | None = TTL_S
) -> CodeResult | BashResult:
    if language == COMMAND:
        return sandbox.exec_bash(code, ttl_s=ttl_s)
    return succeeded(sandbox.run(code, language, ttl_s=ttl_s))


def _is_gone(sandbox: Sandbox, language: str, session_id: str) -> bool:
    """Whether the session has a new instance; fail if it has the old one. It may be refused."""
    try:
        after = _run(sandbox, FIRSTS[language], language, ttl_s=None)
    except RefusedError:
        return False
    assert session_id != after.session_id, f"{session_id} is not destroyed"
    assert "1\n" == after.stdout
    return True
