"""The results of a run of the checks, as values that do not depend on the runner."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.contracts.traffic import Asked
from doublecheck.contracts.verdicts import NOT_ASKED, Verdict, worst
from doublecheck.exit_codes import ExitCode
from doublecheck.notebook_repr import Shown

# A verdict describes the observation, so a should that is not met is "failed", like a must.
# Summaries use this word instead, unless the run is strict, so that counts, report.failed and the
# exit code agree.
FORGIVEN = "failed (should)"
# pytest's exit codes for a run that came to its end
_COMPLETED = (ExitCode.PASSED, ExitCode.FAILED, ExitCode.NOTHING_CHECKED)


@dataclass(frozen=True)
class Check(Shown, drawn_by="reports.notebook.check"):
    """One check and its verdict; ``reason`` says why it did not pass.

    ``details`` describe a failure: its place, the last exchanges, and how to repeat them.
    """

    name: str
    clause: str
    verdict: Verdict
    reason: str = ""
    duration_s: float = 0.0
    details: str = ""

    def __repr__(self) -> str:
        return f"<Check {self.clause} {self.verdict.value}: {self.name}, {self.duration_s:.2f} s>"


@dataclass(frozen=True)
class Run:
    """The results of the checks; ``pytest_exit`` is pytest's exit code.

    ``chosen`` is the number of selected checks: more than in ``checks`` if the run was interrupted.
    ``strict_should`` says that a failed recommendation also fails the run. ``asked`` is what the
    checks asked of the platform, and made there.
    """

    checks: tuple[Check, ...]
    pytest_exit: int
    started: dt.datetime | None = None
    duration_s: float = 0.0
    chosen: int = 0
    interrupted: bool = False
    strict_should: bool = False
    asked: Asked = field(default_factory=Asked)

    def by_clause(self) -> Mapping[Clause, Sequence[Check]]:
        """Return the checks of each clause that has any, in the specification's order."""
        checked = {
            clause: [check for check in self.checks if check.clause == id_]
            for id_, clause in clauses().items()
        }
        return {clause: checks for clause, checks in checked.items() if checks}

    def verdicts(self) -> Mapping[Clause, Verdict]:
        """Return the verdict on each clause that was checked: the worst of its checks."""
        return {
            clause: worst([check.verdict for check in checks])
            for clause, checks in self.by_clause().items()
        }

    def counts(self) -> Mapping[str, int]:
        """Count the clauses by verdict, the worst first.

        ``failed`` are the clauses that fail the run; other failed clauses are ``failed (should)``.
        """
        return in_order(self.outcome(clause, one) for clause, one in self.verdicts().items())

    def outcome(self, clause: Clause, verdict: Verdict) -> str:
        """Return the verdict on a clause in words, which say whether a failure fails the run."""
        lenient = clause.level == "should" and not self.strict_should
        return FORGIVEN if lenient and verdict is Verdict.FAILED else verdict.value

    @property
    def exit_code(self) -> ExitCode:
        """What the run comes to, as the exit code of ``doublecheck run``."""
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
        """Whether a failed clause fails the run; a "should" does so only with ``strict_should``."""
        return any(
            verdict is Verdict.FAILED and (strict_should or clause.level == "must")
            for clause, verdict in self.verdicts().items()
        )


def in_order(words: Iterable[str]) -> Mapping[str, int]:
    """Count the verdicts, the worst first."""
    found = Counter(words)
    known = [Verdict.FAILED.value, FORGIVEN, *(verdict.value for verdict in Verdict)]
    return {word: found[word] for word in dict.fromkeys(known) if found[word]}
