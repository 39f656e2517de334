"""``doublecheck run``: its requirements, the runs, the output and the exit code."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agentdouble
from agentdouble.core.terminal import console
from agentdouble.errors import MissingExtraError as DoublesMissingExtraError
from doublecheck.core.exit_codes import ExitCode
from doublecheck.errors import MissingExtraError
from doublecheck.target.plan import Plan, Sources, described, plan

if TYPE_CHECKING:
    from doublecheck.contracts.run_result import Run
    from doublecheck.reports.report import Report


@dataclass(frozen=True)
class RunOptions:
    """The options of a run: which platform to check, and which checks to run.

    ``baseline`` is a report whose failures are known. ``spelled`` returns the form in which an
    option was given.
    """

    platform: Mapping[str, Any]
    select: str | None = None
    verbose: bool = False
    strict_should: bool = False
    baseline: Path | None = None
    spelled: Callable[[str], str] = "--{}".format

    @cached_property
    def plan(self) -> Plan:
        """The plan of the platform. Raises TargetError."""
        return plan(Sources.of(self.platform, self.spelled))


@dataclass(frozen=True)
class Outputs:
    """The outputs of ``doublecheck run`` and ``doublecheck report``."""

    as_json: bool = False
    html: Path | None = None
    verbose: bool = False

    def require_writable(self) -> None:
        """Raise ReportError, before a run, for a file that could not be written after it."""
        from doublecheck.reports import report  # optional: pytest

        if self.html is not None:
            report.require_writable(self.html)

    def write(self, reports: Sequence[Report]) -> None:
        """Print the reports and write the files. Raise ReportError if a file cannot be written."""
        from doublecheck.reports import document, html, report, terminal  # optional: pytest

        if self.as_json:
            print(document.render(reports), end="")  # noqa: T201
        else:
            terminal.show(reports, console(), verbose=self.verbose)
        if self.html is not None:
            report.write_text(html.render(reports), self.html)


def run_checks(runs: Sequence[RunOptions], outputs: Outputs) -> ExitCode:
    """Run the checks of each platform, print and write the reports, and return the exit code.

    Before the first check, raises TargetError, UnreachableError, ReportError, MissingExtraError for
    a missing package, and DoubleCheckError for a key pair that is refused.
    """
    require_pytest()
    outputs.require_writable()
    from doublecheck.contracts import selections, verdicts  # optional: pytest
    from doublecheck.reports import baseline  # optional: pytest

    for run in runs:
        if run.select is not None:
            selections.require(run.select, f"--only {run.select!r}")
        verdicts.require_consistent(run.plan.value("level"), run.strict_should, run.spelled)
        if run.baseline is not None:
            baseline.report_of(run.baseline, run.plan.name)
        if run.verbose:
            print(*described(run.plan), sep="\n", file=sys.stderr)  # noqa: T201
        require_target(run)
    reports, codes = _run_all(runs)
    if reports:
        outputs.write(reports)
    return ExitCode.worst(codes)


def _run_all(runs: Sequence[RunOptions]) -> tuple[list[Report], set[ExitCode]]:
    """Return a report for each run that had any check, and the exit codes."""
    from doublecheck.reports.report import Report  # optional: pytest
    from doublecheck.run import pytest_run  # optional: pytest

    reports: list[Report] = []
    codes: set[ExitCode] = set()
    for run in runs:
        known = None if run.baseline is None else str(run.baseline)
        selection = pytest_run.Selection(run.select, run.strict_should, known)
        result = pytest_run.run(
            selection.arguments(), verbose=run.verbose, plan=run.plan, modules=selection.modules()
        )
        if not result.checks and not result.interrupted:
            codes.add(_nothing_ran(run, result))
            continue
        reports.append(Report(run.plan.name, run.plan.kind, run.plan.value("url"), result))
        codes.add(result.exit_code)
        if result.interrupted:
            break
    return reports, codes


def require_pytest() -> None:
    """Raise MissingExtraError if pytest is not installed."""
    if importlib.util.find_spec("pytest") is None:
        raise MissingExtraError("pytest, which runs the checks,", install="pytest")


def require_target(run: RunOptions) -> None:
    """Raise an error before the first check if the target cannot be used."""
    if run.plan.in_process:
        _require_double()
    else:
        from doublecheck.client import key_checks, open_target  # slow: 0.4 s

        target = open_target.opened(run.plan, run.spelled("target"))
        key_checks.require(target, run.plan)


def _require_double() -> None:
    try:
        agentdouble.Emulator  # noqa: B018 (its import may fail)
    except DoublesMissingExtraError as error:
        subject = "The double, which 'doublecheck run' without --url starts,"
        raise MissingExtraError(subject, install=f"agentdouble[{error.extra}]") from None


def _nothing_ran(run: RunOptions, result: Run) -> ExitCode:
    from doublecheck.contracts import selections  # optional: pytest

    if run.select is not None and result.pytest_exit != 2:  # 2: interrupted
        selection = f"--only {run.select!r}"
        if result.left_out:
            selection += f" at level {result.level}, which leaves out {', '.join(result.left_out)}"
        raise selections.nothing_matches(selection)
    print("doublecheck: no checks ran.", file=sys.stderr)  # noqa: T201
    return ExitCode.COULD_NOT_ASK
