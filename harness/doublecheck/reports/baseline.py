"""The baseline of a run: an earlier report, whose failures are known and do not fail the run.

A failure is known if the same check failed in the baseline for the same cause. Causes that differ
only in numbers, ids and quoted values are the same, because generated inputs differ; an HTTP status
is a part of the cause. A failed assertion without a sentence has no stable cause, so any such
failure of the check is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from doublecheck.contracts.run_result import FIXED, KNOWN, Check
from doublecheck.contracts.verdicts import BASELINE, CAUSE, CLAUSE, NAME, REASON, VERDICT, Verdict
from doublecheck.errors import ReportError
from doublecheck.reports import document
from doublecheck.reports.report import Report
from doublecheck.target import pytest_options

_VARYING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<!HTTP )(?<!\d)\d+""")


class Baseline:
    """The failures of an earlier run."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self._causes = {
            (check.clause, check.name): _stable(check.root_cause)
            for check in checks
            if check.verdict is Verdict.FAILED
        }

    def has_failure_of(self, check: Check) -> bool:
        """Whether a check failed, for whatever cause."""
        return (check.clause, check.name) in self._causes

    def knows(self, check: Check) -> bool:
        """Whether a check failed for the cause for which it fails now."""
        return self._causes.get((check.clause, check.name)) == _stable(check.root_cause)


def _stable(cause: str) -> str:
    """Return the part of a cause that is the same in each run."""
    return "" if cause.startswith("assert") else _VARYING.sub("", cause)


def report_of(path: Path, target: str) -> Report:
    """Read the report that is the baseline of a target. Raise ReportError.

    Of several reports in the file, it is the one with the target's name.
    """
    reports = document.read(path)
    if len(reports) > 1:
        reports = [report for report in reports if report.name == target]
    if len(reports) != 1:
        raise ReportError(
            f"{path} has several reports, but not exactly one of {target}: use a report of a "
            "single platform as the baseline."
        )
    return reports[0]


def configure(config: pytest.Config, path: Path) -> None:
    """Compare a pytest run with a baseline. Raise UsageError if the file has none."""
    try:
        report = report_of(path, pytest_options.plan_of(config).name)
    except ReportError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(KnownFailures(Baseline(report.checks)), "doublecheck-baseline")


class KnownFailures:
    """A pytest plugin that turns known failures into expected ones, before others see them.

    pytest shows and counts an expected failure (xfail) as such, and so does JUnit XML.
    """

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._fixed = set[str]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what the baseline says about a check."""
        properties = {name: str(value) for name, value in report.user_properties}
        if CLAUSE not in properties:
            return
        check = Check(
            properties[NAME],
            properties[CLAUSE],
            Verdict(properties.get(VERDICT, Verdict.PASSED)),
            reason=properties.get(REASON, ""),
            cause=properties.get(CAUSE, ""),
        )
        if report.failed and check.verdict is Verdict.FAILED and self._baseline.knows(check):
            report.user_properties.append((BASELINE, KNOWN))
            report.outcome, report.wasxfail = "skipped", f"{KNOWN}: {check.root_cause}"
        elif report.when == "call" and report.passed and self._baseline.has_failure_of(check):
            self._fixed.add(report.nodeid)
        if report.nodeid in self._fixed and not report.failed:  # JUnit XML takes the teardown's
            report.user_properties.append((BASELINE, FIXED))
