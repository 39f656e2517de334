"""Verdicts: the result of a check, or the reason why it was not carried out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import pytest

from doublecheck.errors import AnswerError, BrokenOfferError, DoubleCheckError, NoAnswerError

if TYPE_CHECKING:
    from doublecheck.contracts.clauses import Clause
    from doublecheck.target.surfaces import Surface
    from doublecheck.target.target import Target

CLAUSE = "clause"
VERDICT = "verdict"
OBSERVED = "observed"
REASON = "reason"
ROLE = "role"


class Verdict(str, Enum):
    """The verdict of a check; from the worst to the most harmless.

    "could not ask" means that the platform, or the part of it that the check is about, did not
    answer as one; an error, that the check itself broke. Neither is blamed on the platform. Verdicts that begin with "not" mean that the check was not carried out, for a reason in the
    report. Behaviour that the specification leaves open is observed, and neither passes nor fails.
    """

    FAILED = "failed"
    ERROR = "error"
    COULD_NOT_ASK = "could not ask"
    NOT_RUN = "not run"
    NOT_OBSERVABLE = "not observable"
    NOT_APPLICABLE = "not applicable"
    NOT_OFFERED = "not offered"
    OBSERVED = "observed"
    PASSED = "passed"


NOT_ASKED = (Verdict.ERROR, Verdict.COULD_NOT_ASK)
_CARRIED_OUT = (Verdict.FAILED, *NOT_ASKED, Verdict.PASSED)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a clause that has several checks."""
    carried_out = [one for one in verdicts if one in _CARRIED_OUT]
    return min(carried_out or verdicts, key=list(Verdict).index)


def why_not(
    clause: Clause,
    target: Target,
    *,
    reference_app: bool,
    writes: bool = False,
    surface: Surface | None = None,
) -> str | None:
    """Return why a check cannot run on a target, and what would let it; or None if it can.

    ``writes`` says that the check creates or deletes something there; ``surface`` is the one that
    it asks, by default the clause's.
    """
    surface = surface or clause.surface
    if clause.scope == "library" and not target.offers("library"):
        return f"{Verdict.NOT_APPLICABLE.value}: checks the library of this process, not a platform"
    if not target.offers(surface):
        return f"{Verdict.NOT_OFFERED.value}: {target.name} declares no {surface}"
    if reference_app and not target.reference_app:
        return (
            f"{Verdict.NOT_OBSERVABLE.value}: needs the reference application, which 'doublecheck "
            "contracts app' writes and --reference-app declares"
        )
    if writes and target.kind == "live" and not target.allow_writes:
        return (
            f"{Verdict.NOT_RUN.value}: makes or deletes something on {target.name}, which "
            "--allow-writes allows (in pytest --platform-allow-writes, in Python "
            "allow_writes=True)"
        )
    return None


def of_failure(when: str, error: BaseException, *, library: bool = False) -> Verdict:
    """Return FAILED if an exception speaks against the platform, else why nothing was learned.

    In a check of the ``library`` each does, because it is the library that raises.
    """
    broken = (AssertionError, AnswerError, NoAnswerError, pytest.fail.Exception)
    if isinstance(error, BrokenOfferError):
        return Verdict.FAILED
    if when == "call" and (library or isinstance(error, broken)):
        return Verdict.FAILED
    return Verdict.COULD_NOT_ASK if isinstance(error, DoubleCheckError) else Verdict.ERROR


def of_skip(reason: str) -> Verdict:
    """Return the verdict that a reason for not carrying out a check begins with."""
    for verdict in (Verdict.NOT_APPLICABLE, Verdict.NOT_OBSERVABLE, Verdict.NOT_OFFERED):
        if reason.startswith(f"{verdict.value}: "):
            return verdict
    return Verdict.NOT_RUN
