"""Checks of the instance of a session: its creation, its state, and its lifetime (SBX-01 to 03)."""

from __future__ import annotations

import datetime as dt
import functools
import re
from dataclasses import replace

import pytest

from doublecheck.client._sync.clock import PlatformClock
from doublecheck.contracts import sandboxes, sequences, wire
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, at_once
from doublecheck.contracts.instance_model import InstancesModel
from doublecheck.contracts.sandboxes import JAVASCRIPT, PYTHON, CheckSandbox, failure, succeeded
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
    clock.advance(minutes=30)  # also past a deadline that use has extended
    assert _count(sandbox, PYTHON) in (None, 1), (
        "the second instance of a session outlives its time"
    )


@clause("SBX-03", writes=True)
def test_a_session_that_is_started_again_lives_as_long(
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
    assert 2 == _count(sandbox, PYTHON), "a session that was started again ends early"


@clause("SBX-03", writes=True)
@pytest.mark.parametrize("together", [False, True], ids=["in turn", "at once"])
def test_every_session_lives_as_long(
    sandbox: CheckSandbox, clock: PlatformClock, together: bool
) -> None:
    """The lifetime does not depend on how an instance was created or used.

    Each kind of call creates four: one is unused until the end, the others are used before it, once,
    several times, or in every way. After thirty minutes, only the first has certainly ended.
    """
    sandbox = replace(sandbox, ttl_s=None)
    kinds = [*sandboxes.COUNTS, FILE]
    if sandbox.platform.target.reference_app:
        kinds.append(APPLICATION)
    uses = ("unused", "once", "often", "variously")
    boxes = {
        (use, kind): sandbox.with_session(f"{use}-{kind}-{together}")
        for use in uses
        for kind in kinds
    }

    def counts(*chosen: str) -> dict[tuple[str, str], int | None]:
        keys = [key for key in boxes if key[0] in chosen]
        calls = [functools.partial(_count, boxes[key], key[1]) for key in keys]
        results = at_once(calls) if together else [call() for call in calls]
        return dict(zip(keys, results, strict=True))

    def wrong(count: int, *chosen: str) -> str:
        return listed(" ".join(key) for key, it in counts(*chosen).items() if it != count)

    new = wrong(1, *uses)
    assert not new, f"new sessions have state: {new}"
    for kind in kinds:
        _use_variously(boxes["variously", kind])
    for count in (2, 3):
        clock.advance(minutes=10)
        lost = wrong(count, "often")
        assert not lost, f"lost after {10 * (count - 1)} minutes: {lost}"
    clock.advance(BEFORE_THE_END - dt.timedelta(minutes=20))
    lost = wrong(2, "once", "variously") or wrong(4, "often")
    assert not lost, f"lost before thirty minutes have passed: {lost}"
    clock.advance(PAST_IT)
    outlived = [" ".join(key) for key, it in counts("unused").items() if it not in (None, 1)]
    assert not outlived, f"alive after thirty minutes: {listed(outlived)}"


@clause("SBX-03", writes=True)
def test_nothing_survives_the_end(
    sandbox: CheckSandbox, clock: PlatformClock, examples: Examples
) -> None:
    """Whatever was set or written before, an instance that has ended leaves nothing."""
    sandbox = replace(sandbox, ttl_s=None)
    boxes = [sandbox, sandbox.with_session("other")]
    steps = InstancesModel.sequences(("assign", "read", "write", "load", "expire"), 24)
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
