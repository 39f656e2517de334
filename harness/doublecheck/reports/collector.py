"""Collect the results of checks from pytest's reports, even from xdist's workers."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doublecheck.contracts.clauses import MARKER
from doublecheck.contracts.exit_status import LEFT_OUT
from doublecheck.contracts.run_result import FIXED, KNOWN, Check, InBaseline, Run
from doublecheck.contracts.verdicts import (
    BASELINE,
    CAUSE,
    CLAUSE,
    LOST,
    NAME,
    REASON,
    REQUESTS,
    ROLE,
    VERDICT,
    Verdict,
    of_skip,
)
from doublecheck.errors import ReportError
from doublecheck.reports import report
from doublecheck.target import pytest_options


class Collector:
    """A pytest plugin that collects reports. It ignores tests that do not check a clause.

    Under pytest-xdist it runs in the controller, receives the workers' reports in any order, and
    sorts them in the order of collection.
    """

    def __init__(self) -> None:
        self._started = dt.datetime.now(dt.timezone.utc)
        self._began = time.perf_counter()
        self._chosen: Sequence[str] = ()
        self._checks: dict[str, Check] = {}
        self._seconds: dict[str, float] = {}
        self._requests: dict[str, int] = {}
        self._lost = 0
        self._interrupted = False
        self._strict_should = False
        self._examples, self._seed = 0, 0
        self._level, self._left_out = "full", tuple[str, ...]()

    def run(self, pytest_exit: int) -> Run:
        """Return the results so far."""
        return Run(
            self.checks(),
            int(pytest_exit),
            started=self._started,
            duration_s=round(time.perf_counter() - self._began, 3),
            chosen=len(self._chosen),
            interrupted=self._interrupted,
            strict_should=self._strict_should,
            requests=sum(self._requests.values()),
            lost=self._lost,
            examples=self._examples,
            seed=self._seed,
            level=self._level,
            left_out=self._left_out,
        )

    def checks(self) -> tuple[Check, ...]:
        """Return the checks that have a verdict, in the order of collection."""
        position = {id_: index for index, id_ in enumerate(self._chosen)}
        return tuple(
            replace(
                self._checks[id_],
                duration_s=round(self._seconds[id_], 4),
                requests=self._requests.get(id_),
            )
            for id_ in sorted(self._checks, key=lambda id_: position.get(id_, len(position)))
        )

    def pytest_configure(self, config: pytest.Config) -> None:
        self._strict_should = bool(config.getoption("platform_strict_should", False))

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        from doublecheck.contracts import engine  # slow: Hypothesis

        plan = pytest_options.plan_of(session.config)
        self._examples, self._seed = engine.chosen(plan)
        self._level = plan.value("level") or self._level

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._left_out = session.config.stash.get(LEFT_OUT, ())
        if session.items:  # under xdist only the workers have items
            self._chosen = [
                item.nodeid for item in session.items if item.get_closest_marker(MARKER)
            ]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._chosen = ids

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._interrupted = isinstance(excinfo.value, KeyboardInterrupt)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if CLAUSE not in properties:
            return
        id_ = report.nodeid
        if report.when == "teardown" and REQUESTS in properties:
            self._requests[id_] = int(str(properties[REQUESTS]))
        self._lost += int(str(properties.get(LOST, 0)))
        self._seconds[id_] = self._seconds.get(id_, 0.0) + report.duration
        outcome = _outcome(report)
        before = self._checks.get(id_)
        if outcome is not None and (before is None or before.verdict is Verdict.PASSED):
            self._checks[id_] = Check(
                str(properties[NAME]),
                str(properties[CLAUSE]),
                *outcome,
                details=report.longreprtext if _has_failed(report) else "",
                role="smoke" if properties[ROLE] == "smoke" else "check",
                cause=str(properties.get(CAUSE, "")),
                baseline=_in_baseline(outcome[0], properties.get(BASELINE)),
            )


def _outcome(report: pytest.TestReport) -> tuple[Verdict, str] | None:
    """Return the verdict of one phase of a check, or None."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        return of_skip(reason), reason
    if _has_failed(report):
        properties = dict(report.user_properties)
        reason = str(properties.get(REASON, report.longreprtext))
        return Verdict(properties.get(VERDICT, Verdict.ERROR)), reason
    return (Verdict.PASSED, "") if report.when == "call" else None


def _in_baseline(verdict: Verdict, noted: object) -> InBaseline:
    """Return what the baseline says about a check with this verdict."""
    if verdict is Verdict.FAILED and noted == KNOWN:
        return KNOWN
    return FIXED if verdict is Verdict.PASSED and noted == FIXED else ""


def _has_failed(report: pytest.TestReport) -> bool:
    """Whether a phase of a check failed, even if the baseline knows the failure."""
    return report.failed or dict(report.user_properties).get(BASELINE) == KNOWN


def write_reports(config: pytest.Config, paths: Sequence[Path]) -> None:
    """Write reports at the end of the run. Raise UsageError if one could not be written."""
    try:
        for path in paths:
            report.require_format(path)
            report.require_writable(path)
    except ReportError as error:
        raise pytest.UsageError(str(error)) from None
    collector = Collector()
    config.pluginmanager.register(collector, "doublecheck-collector")
    config.pluginmanager.register(ReportWriter(config, paths, collector), "doublecheck-reporting")


class ReportWriter:
    """A pytest plugin that writes reports at the end of the run, even if it was interrupted."""

    def __init__(self, config: pytest.Config, paths: Sequence[Path], collector: Collector) -> None:
        self._config = config
        self._paths = paths
        self._collector = collector
        self._lines: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the reports."""
        plan = pytest_options.plan_of(self._config)
        run = self._collector.run(int(session.exitstatus))
        results = report.Report(plan.name, plan.kind, plan.value("url"), run)
        for path in self._paths:
            try:
                report.write([results], path)
            except ReportError as error:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
                self._lines.append(str(error))
            else:
                self._lines.append(f"platform: {len(run.checks)} contract checks written to {path}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the paths of the reports."""
        for line in self._lines:
            terminalreporter.write_line(line)
