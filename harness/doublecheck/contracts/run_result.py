"""The results of a run of the checks, as values that do not depend on the runner."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.contracts.verdicts import NOT_ASKED, Verdict, worst
from doublecheck.core.exit_codes import ExitCode

# A verdict describes the observation, so an unmet should is "failed", like a must. Summaries use
# this word instead, unless the run is strict, so that counts, report.failed and the exit code
# agree.
FORGIVEN = "failed (should)"
KNOWN_FAILURE = "failed (known)"  # in the baseline, for the same cause
# Some of its checks passed and others did not run, or a smoke check replaced them.
PARTLY = "partly passed"
UNASKED = "passed without a request"
Role = Literal["check", "smoke"]
ROLES: tuple[Role, ...] = get_args(Role)
KNOWN: Final = "known failure"
FIXED: Final = "no longer fails"
InBaseline = Literal["", "known failure", "no longer fails"]
IN_BASELINE: tuple[InBaseline, ...] = get_args(InBaseline)
_DIGITS = re.compile(r"\d+")
# pytest's exit codes for a run that completed
_COMPLETED = (ExitCode.PASSED, ExitCode.FAILED, ExitCode.NOTHING_CHECKED)


@dataclass(frozen=True)
class Check:
    """A check and its verdict. ``reason`` says why it did not pass.

    ``cause`` is the root cause of a failure, which other checks may share.
    ``details`` describes a failure: its location, the last exchanges, and how to repeat them.
    ``role`` says whether the check covers its whole clause, or replaces a check that does.
    ``baseline`` compares it with the baseline of the run: ``known failure`` if it failed there for
    the same cause, ``no longer fails`` if it failed there and passes now. ``requests`` is the
    number of requests that it sent to the platform; None if nobody counted them.
    """

    name: str
    clause: str
    verdict: Verdict
    reason: str = ""
    duration_s: float = 0.0
    details: str = ""
    role: Role = "check"
    cause: str = ""
    baseline: InBaseline = ""
    requests: int | None = None

    @property
    def line(self) -> str:
        """The first line of the reason."""
        first = self.reason.partition("\n")[0].rstrip()
        return f"{self.verdict.value}: {first}" if self.verdict is Verdict.COULD_NOT_ASK else first

    @property
    def is_unasked(self) -> bool:
        """Whether the check of a platform passed without a request to it."""
        is_wire = clauses()[self.clause].surface != "library"
        return is_wire and self.verdict is Verdict.PASSED and self.requests == 0

    @property
    def root_cause(self) -> str:
        """The cause of a failure, or the first line of its reason."""
        return self.cause or self.reason.partition("\n")[0].rstrip()

    def __repr__(self) -> str:
        return f"<Check {self.clause} {self.verdict.value}: {self.name}, {self.duration_s:.2f} s>"


@dataclass(frozen=True)
class Finding:
    """A root cause, the worst outcome of its checks, and the checks that it affected."""

    cause: str
    outcome: str
    checks: Sequence[Check]

    @property
    def clauses(self) -> Sequence[str]:
        """The ids of the clauses of its checks, in the specification's order."""
        ids = {check.clause for check in self.checks}
        return tuple(id_ for id_ in clauses() if id_ in ids)


@dataclass(frozen=True)
class Run:
    """The results of the checks. ``pytest_exit`` is pytest's exit code.

    ``chosen`` is the number of selected checks: more than in ``checks`` if the run was interrupted.
    ``strict_should``: a failed recommendation also fails the run. ``requests`` is the number of
    requests that the checks sent, and ``lost`` the number of answers that were lost on the way.
    Each check tried ``examples`` generated inputs, from the ``seed``. ``left_out`` are the declared
    surfaces that none of the checks of the ``level`` is about.
    """

    checks: tuple[Check, ...]
    pytest_exit: int
    started: dt.datetime | None = None
    duration_s: float = 0.0
    chosen: int = 0
    interrupted: bool = False
    strict_should: bool = False
    requests: int = 0
    lost: int = 0
    examples: int = 0
    seed: int = 0
    level: str = "full"
    left_out: tuple[str, ...] = ()

    def by_clause(self) -> Mapping[Clause, Sequence[Check]]:
        """Return the checks of each clause that has any, in the specification's order."""
        checked = {
            clause: [check for check in self.checks if check.clause == id_]
            for id_, clause in clauses().items()
        }
        return {clause: checks for clause, checks in checked.items() if checks}

    def verdicts(self) -> Mapping[Clause, Verdict]:
        """Return the verdict on each checked clause: the worst of its checks."""
        return {
            clause: worst([check.verdict for check in checks])
            for clause, checks in self.by_clause().items()
        }

    def findings(self) -> Sequence[Finding]:
        """Return each root cause once, the worst first.

        Causes that differ in numbers are one, and so are the failed assertions of a clause. Known
        failures are apart.
        """
        by_cause: dict[tuple[str, str], list[Check]] = {}
        for check in self.checks:
            if check.verdict in (Verdict.FAILED, *NOT_ASKED):
                cause = check.root_cause
                key = check.clause if cause.startswith("assert") else _DIGITS.sub("", cause)
                by_cause.setdefault((key, check.baseline), []).append(check)
        findings = []
        for checks in by_cause.values():
            worst_outcome = min(map(self.check_outcome, checks), key=OUTCOMES.index)
            findings.append(Finding(checks[0].root_cause, worst_outcome, checks))
        return sorted(findings, key=lambda finding: OUTCOMES.index(finding.outcome))

    def counts(self) -> Mapping[str, int]:
        """Count the clauses by outcome: failures first, then passes, then checks that did not run.

        ``failed`` are the clauses that fail the run; other failed clauses are ``failed (should)``
        or ``failed (known)``.
        """
        counts = Counter(self.outcomes().values())
        return {word: counts[word] for word in OUTCOMES if counts[word]}

    def outcomes(self) -> Mapping[Clause, str]:
        """Return the outcome of each checked clause, in words."""
        return {c: self.clause_outcome(checks) for c, checks in self.by_clause().items()}

    def clause_outcome(self, checks: Sequence[Check]) -> str:
        """Return the outcome of a clause, in words."""
        verdict = worst([check.verdict for check in checks])
        if verdict is Verdict.PASSED and _is_partial(checks):
            return PARTLY
        outcomes = [self.check_outcome(check) for check in checks if check.verdict is verdict]
        return min(outcomes, key=OUTCOMES.index)

    def check_outcome(self, check: Check) -> str:
        """Return the verdict of a check in words that say whether a failure fails the run."""
        if check.verdict is Verdict.FAILED and check.baseline == KNOWN:
            return KNOWN_FAILURE
        lenient = clauses()[check.clause].level == "should" and not self.strict_should
        return FORGIVEN if lenient and check.verdict is Verdict.FAILED else check.verdict.value

    def fixed(self) -> Sequence[Check]:
        """Return the checks that failed in the baseline and pass now."""
        return tuple(check for check in self.checks if check.baseline == FIXED)

    @property
    def exit_code(self) -> ExitCode:
        """The result of the run as the exit code of ``doublecheck run``."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.fails(strict_should=self.strict_should):
            return ExitCode.FAILED
        verdicts = {check.verdict for check in self.checks}
        if verdicts & {*NOT_ASKED} or self.pytest_exit not in _COMPLETED:
            return ExitCode.COULD_NOT_ASK
        checked = verdicts & {Verdict.PASSED, Verdict.FAILED}
        return ExitCode.PASSED if checked else ExitCode.NOTHING_CHECKED

    def fails(self, *, strict_should: bool = False) -> bool:
        """Whether a failed check fails the run. A "should" does so only with ``strict_should``.

        Known failures do not.
        """
        return any(
            check.verdict is Verdict.FAILED
            and check.baseline != KNOWN
            and (strict_should or clauses()[check.clause].level == "must")
            for check in self.checks
        )


NOT_CARRIED_OUT = tuple(verdict.value for verdict in Verdict if verdict.value.startswith("not "))
OUTCOMES: tuple[str, ...] = (
    *(Verdict.FAILED.value, FORGIVEN, KNOWN_FAILURE),
    *(Verdict.ERROR.value, Verdict.COULD_NOT_ASK.value),
    *(Verdict.PASSED.value, PARTLY),
    *NOT_CARRIED_OUT,
)


def _is_partial(checks: Sequence[Check]) -> bool:
    """Whether the passed checks cover only a part of their clause."""
    skipped = (Verdict.NOT_RUN, Verdict.NOT_OBSERVABLE)
    complete = any(check.verdict is Verdict.PASSED and check.role == "check" for check in checks)
    return not complete or any(check.verdict in skipped for check in checks)
