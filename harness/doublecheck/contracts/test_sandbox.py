"""Checks of the instance of a session: its creation, its state, and its lifetime (SBX-01 to 03)."""

from __future__ import annotations

import datetime as dt
import functools
import re
from dataclasses import replace

import pytest

from agentdouble.core import ledger
from doublecheck.client._sync.clock import PlatformClock
from doublecheck.contracts import sandboxes, sequences, wire
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, at_once
from doublecheck.contracts.instance_model import InstancesModel
from doublecheck.contracts.sandboxes import (
    JAVASCRIPT,
    PYTHON,
    CheckSandbox,
    failure,
    succeeded,
)
from doublecheck.contracts.sentences import listed
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError

FILE, APPLICATION = "file", "application"
BEFORE_THE_END = dt.timedelta(minutes=29, seconds=59)
PAST_IT = dt.timedelta(seconds=2)


@clause("SBX-01", writes=True)
def test_the_first_call_creates_the_instance(sandbox: CheckSandbox) -> None:
    """A first call with code or a command creates a new instance, and runs once."""
    boxes = {kind: sandbox.with_session(f"Another_one-{kind}") for kind in sandboxes.COUNTS}
    results = [sandboxes.counted(box, kind) for kind, box in boxes.items()]

    counts = dict(zip(sandboxes.COUNTS, [int(result.stdout) for result in results], strict=True))
    assert dict.fromkeys(sandboxes.COUNTS, 1) == counts, (
        f"a first call has run several times: {counts}"
    )
    ids = {result.session_id for result in results}
    assert len(sandboxes.COUNTS) == len(ids), f"sessions share an instance: {listed(ids)}"
    wrong = [id_ for id_ in ids if not re.fullmatch(r"s-\S+", id_)]
    assert [] == wrong, f"SessionId does not begin with s-: {listed(wrong)}"


@clause("SBX-02", writes=True)
def test_the_same_session_is_reused(sandbox: CheckSandbox) -> None:
    """Later calls find every kind of state, even after errors, JavaScript and commands."""
    paths = sandboxes.leave(sandbox, "one")

    failure(sandbox.run("1 / 0"))
    failure(sandbox.run("throw new Error('on purpose')", JAVASCRIPT))
    sandbox.run("print('x' * 300_000)")
    sandbox.exec_bash("true")

    for _ in range(2):
        sandboxes.require_state(sandbox, paths, "one")


@for_clauses(("SBX-01", "SBX-02"), writes=True)
def test_first_calls_at_the_same_time_share_an_instance(sandbox: CheckSandbox, id_: str) -> None:
    """Several first calls of a session create one instance, in which each of them runs."""
    results = at_once([functools.partial(sandbox.run, "pass")] * 3, busy=(RefusedError,))

    ids = {result.session_id for result in results}
    assert 1 == len(ids), f"first calls at the same time create {len(ids)} instances"
    counts = sorted(succeeded(result).execution_count or 0 for result in results)
    assert [1, 2, 3] == counts, f"three calls count {listed(counts)}"


@clause("SBX-03", writes=True)
def test_the_instance_is_destroyed_after_thirty_minutes(
    sandbox: CheckSandbox, clock: PlatformClock
) -> None:
    """An instance keeps its state until thirty minutes have passed; an unused one then ends.

    One second later the session has a new instance without state, or is refused (U-TTL-EXTENDS,
    U-TTL-AFTER). That instance lives as long.
    """
    sandbox = replace(sandbox, ttl_s=None)
    id_ = succeeded(sandbox.run("pass")).session_id
    paths = sandboxes.leave(sandbox, "one")

    clock.advance(BEFORE_THE_END)
    used = sandbox.with_session("used")
    assert 1 == _count(used, PYTHON), "a new session has the state of another"
    clock.advance(PAST_IT)
    assert 2 == _count(used, PYTHON), "a session ends with an older one"

    if _count(sandbox, PYTHON) is None:
        return
    assert id_ != succeeded(sandbox.run("pass")).session_id, "the instance outlives its time"
    sandboxes.require_state(sandbox, paths, None)
    clock.advance(BEFORE_THE_END)
    assert 2 == _count(sandbox, PYTHON), "the second instance of a session ends early"
    clock.advance(minutes=30)  # also past a deadline that was set anew
    assert _count(sandbox, PYTHON) in (None, 1), (
        "the second instance of a session outlives its time"
    )


@clause("SBX-03", writes=True)
def test_a_session_that_is_begun_again_lives_as_long(
    sandbox: CheckSandbox, clock: PlatformClock
) -> None:
    """A session that was ended has a new instance, with thirty minutes of its own."""
    sandbox = replace(sandbox, ttl_s=None)
    assert 1 == _count(sandbox, PYTHON), "a new session has state"
    clock.advance(minutes=20)
    sandbox.end()
    if _count(sandbox, PYTHON) is None:
        not_observable("a session that was ended is refused (U-TOOL-SESSION-ENDED)")
    clock.advance(minutes=20)
    assert 2 == _count(sandbox, PYTHON), "a session that was begun again ends early"


@clause("SBX-03", writes=True)
@pytest.mark.parametrize("together", [False, True], ids=["in turn", "at once"])
def test_every_session_lives_as_long(
    sandbox: CheckSandbox, clock: PlatformClock, together: bool
) -> None:
    """How an instance was created does not matter, nor how often it is used, nor by what.

    Each kind of call creates one that is not used until the end, and others that are used just
    before: once, several times, or in every way. At the end, only the first has certainly ended.
    """
    sandbox = replace(sandbox, ttl_s=None)
    kinds = (
        *sandboxes.COUNTS,
        FILE,
        *([APPLICATION] if sandbox.platform.target.reference_app else ()),
    )
    uses = ("unused", "once", "often", "variously")
    boxes = {
        (kind, use): sandbox.with_session(f"{use}-{kind}-{together}")
        for kind in kinds
        for use in uses
    }

    def counts(*chosen: str) -> dict[str, int | None]:
        some = {
            f"{key[1]}: {key[0]}": (*key, box) for key, box in boxes.items() if key[1] in chosen
        }
        calls = [functools.partial(_count, box, kind) for kind, _, box in some.values()]
        return dict(zip(some, at_once(calls) if together else [it() for it in calls], strict=True))

    def wrong(count: int, *chosen: str) -> dict[str, int | None]:
        return {name: it for name, it in counts(*chosen).items() if it != count}

    assert {} == wrong(1, *uses), "a new session has state"
    for (_, use), box in boxes.items():
        if use == "variously":
            _use_variously(box)
    for count in (2, 3):
        clock.advance(minutes=10)
        assert {} == wrong(count, "often"), f"lost after {10 * (count - 1)} minutes"
    clock.advance(BEFORE_THE_END - dt.timedelta(minutes=20))
    lost = wrong(2, "once", "variously") | wrong(4, "often")
    assert {} == lost, "lost before thirty minutes have passed"
    clock.advance(PAST_IT)
    outlived = {name: it for name, it in counts("unused").items() if it not in (None, 1)}
    assert {} == outlived, "alive after thirty minutes"


@clause("SBX-03", writes=True)
def test_nothing_survives_the_end(
    sandbox: CheckSandbox, clock: PlatformClock, examples: Examples
) -> None:
    """Whatever was set or written before, an instance that has ended leaves nothing."""
    if ledger.choose("U-TTL-AFTER") != ledger.unknowns()["U-TTL-AFTER"].default.name:
        not_observable("an expired session is refused (U-TTL-AFTER)")
    rules = ("assign", "read", "write", "load", "expire")
    sandbox = replace(sandbox, ttl_s=None)
    boxes = [sandbox, sandbox.with_session("other")]
    steps = InstancesModel.sequences(rules, 24)
    sequences.run(examples, lambda: InstancesModel(boxes, clock=clock), steps)


def _count(box: CheckSandbox, kind: str) -> int | None:
    """Return how often this was called in an instance, or None if the session is refused."""
    try:
        if kind == APPLICATION:
            return _counted_by_an_application(box)
        if kind != FILE:
            return int(sandboxes.counted(box, kind).stdout)
        count = len(box.read_file(sandboxes.COUNTED) or b"")
        box.upload(sandboxes.COUNTED, b"x" * (count + 1))
    except RefusedError:
        return None
    return len(box.read_file(sandboxes.COUNTED) or b"")


def _use_variously(box: CheckSandbox) -> None:
    """Use a session in every way, also with code that fails."""
    for code, language in (("1 / 0", PYTHON), ("throw 1", JAVASCRIPT), ("pass", PYTHON)):
        box.run(code, language)
    box.exec_bash("false")
    box.upload("/tmp/doublecheck-various", b"content")  # noqa: S108 (of the sandbox)


def _counted_by_an_application(box: CheckSandbox) -> int | None:
    """Return the count of a session in which the reference application runs the code."""
    payload = {"do": "run_code", "prompt": sandboxes.COUNTS[PYTHON]}
    caller = {"user_id": box.user_id or "", "session_id": box.session_id or ""}
    answer = wire.invoke(box.platform, payload, caller)
    if answer.status_code >= 400:
        return None
    _, data = wire.inner({"Result": wire.returned(answer)})
    return int("".join(output.get("text") or "" for output in data["outputs"]))
