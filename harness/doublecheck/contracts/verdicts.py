"""Verdicts on checks, and the levels of a run, which decide which checks run.

``full`` has every check that the platform can show. ``quick`` is for everyday use: it tries two
examples, leaves out browsers, hosted runtimes, A2A applications and what expires, and checks each
clause of the sandbox, the control plane and the library once. If none of a clause's checks can
run, because they need the reference application or write, a check of ``test_smoke`` replaces them.
``smoke`` has only these checks, and a few that need as little: requests to each surface that do not
need a deployed application. It creates nothing, unless writes are allowed. If a declared surface is
missing, the smoke level fails; the full level reports that it could not be checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NoReturn

import pytest

from doublecheck.contracts.clauses import Clause
from doublecheck.errors import (
    AbsentSurfaceError,
    AnswerError,
    DoubleCheckError,
    NoAnswerError,
    TargetError,
)
from doublecheck.target.facts import Surface
from doublecheck.target.target import Target

# the properties of reports
CLAUSE, VERDICT, REASON, CAUSE = "clause", "verdict", "reason", "cause"
ROLE, NAME, REQUESTS, LOST, BASELINE = "role", "name", "requests", "lost", "baseline"
SMOKE, QUICK = "smoke", "quick"


class Verdict(str, Enum):
    """The verdict of a check, from the worst to the most harmless.

    "could not ask" means that the platform, or the part of it under test, did not answer as one;
    "error" means that the check itself broke. Neither counts against the platform. Verdicts that
    begin with "not" mean that the check did not run, for a reason in the report.
    """

    FAILED = "failed"
    ERROR = "error"
    COULD_NOT_ASK = "could not ask"
    NOT_RUN = "not run"
    NOT_OBSERVABLE = "not observable"
    NOT_APPLICABLE = "not applicable"
    NOT_OFFERED = "not offered"
    PASSED = "passed"


NOT_ASKED = (Verdict.ERROR, Verdict.COULD_NOT_ASK)
CARRIED_OUT = (Verdict.FAILED, *NOT_ASKED, Verdict.PASSED)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a clause with several checks."""
    carried_out = [verdict for verdict in verdicts if verdict in CARRIED_OUT]
    return min(carried_out or verdicts, key=list(Verdict).index)


def why_not(
    clause: Clause,
    target: Target,
    *,
    reference_app: bool,
    writes: bool = False,
    surface: Surface | None = None,
) -> str | None:
    """Return why a check cannot run on a target and what would enable it, or None if it can.

    ``writes``: the check creates or deletes something there. ``surface`` is the one that it uses,
    by default the clause's.
    """
    surface = surface or clause.surface
    if clause.scope == "library" and not target.offers("library"):
        return f"{Verdict.NOT_APPLICABLE.value}: checks this process's library, not a platform"
    if not target.offers(surface):
        return f"{Verdict.NOT_OFFERED.value}: {target.name} does not declare {surface}"
    if reference_app and not target.reference_app:
        return (
            f"{Verdict.NOT_OBSERVABLE.value}: needs the reference application, which 'doublecheck "
            "contracts app' writes and --reference-app declares"
        )
    if writes and target.kind == "live" and not target.allow_writes:
        return (
            f"{Verdict.NOT_RUN.value}: creates or deletes something on {target.name}; allow "
            "this with --allow-writes (in pytest --platform-allow-writes, in Python "
            "allow_writes=True)"
        )
    return None


def of_failure(when: str, error: BaseException, *, library: bool = False) -> Verdict:
    """Return FAILED if an exception counts against the platform, else why nothing was learned.

    In a check of the ``library`` every exception does, because the library raises it.
    """
    broken = (AssertionError, AnswerError, NoAnswerError, pytest.fail.Exception)
    if isinstance(error, AbsentSurfaceError) and error.offered:
        return Verdict.FAILED
    if when == "call" and (library or isinstance(error, broken)):
        return Verdict.FAILED
    return Verdict.COULD_NOT_ASK if isinstance(error, DoubleCheckError) else Verdict.ERROR


def of_skip(reason: str) -> Verdict:
    """Return the verdict with which a skip reason begins."""
    for verdict in (Verdict.NOT_APPLICABLE, Verdict.NOT_OBSERVABLE, Verdict.NOT_OFFERED):
        if reason.startswith(f"{verdict.value}: "):
            return verdict
    return Verdict.NOT_RUN


def not_observable(reason: str) -> NoReturn:
    """Skip a check, because the platform cannot show what it checks."""
    pytest.skip(f"{Verdict.NOT_OBSERVABLE.value}: {reason}")


_CHECKED_ONCE = ("sandbox", "control_plane", "library")


def require_consistent(
    level: str | None, strict_should: bool, spelled: Callable[[str], str]
) -> None:
    """Raise TargetError if an option does not fit the level."""
    if level == SMOKE and strict_should:
        raise TargetError(
            f"{spelled('level')} {SMOKE} skips most recommendations, so it cannot be combined "
            f"with {spelled('strict-should')}. Remove one of them."
        )


def select(
    config: pytest.Config,
    items: list[pytest.Item],
    *,
    level: str,
    reference_app: bool,
    writes: bool,
    in_process: bool,
) -> None:
    """Deselect the checks that do not belong to the level of a run.

    ``reference_app`` and ``writes`` say what checks may use; a double ``in_process`` can show
    everything.
    """
    marks = {item.nodeid: mark for item in items if (mark := item.get_closest_marker(CLAUSE))}
    covered = {
        _subject(mark)
        for mark in marks.values()
        if not mark.kwargs["smoke"]
        and (reference_app or not mark.kwargs["reference_app"])
        and (writes or not mark.kwargs["writes"])
    }

    counts = Counter[str]()

    def is_selected(item: pytest.Item) -> bool:
        mark = marks.get(item.nodeid)
        if mark is None:
            return True
        if level == QUICK:
            counts[mark.args[0].id] += 1
            is_checked = mark.kwargs["surface"] in _CHECKED_ONCE and counts[mark.args[0].id] > 1
            if is_checked or not mark.args[0].quick:
                return False
        if level == SMOKE:
            needs = mark.kwargs["reference_app"] or mark.kwargs["writes"]
            return bool(mark.kwargs["smoke"] or (mark.args[0].smoke and not needs))
        return not mark.kwargs["smoke"] or not (in_process or _subject(mark) in covered)

    selected = [item for item in items if is_selected(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in selected])
    items[:] = selected


def _subject(mark: pytest.Mark) -> tuple[str, str]:
    """Return the clause and the surface of a check."""
    return mark.args[0].id, mark.kwargs["surface"]
