"""``--platform-report``: write the results of a pytest run's contract checks to a file.

The file's suffix selects the format. It also works with pytest-xdist's workers. Every test run
loads this module, so it imports the modules for a report only if one is requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck.wire import call_log

if TYPE_CHECKING:
    from doublecheck.reports.collector import Collector


def add_option(group: pytest.OptionGroup) -> None:
    """Add the option."""
    group.addoption(
        "--platform-report",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="write the results of the contract checks: .html or .json; repeatable",
    )


def configure(config: pytest.Config) -> None:
    """Prepare a report. Raise UsageError, before the run, if it could not be written."""
    paths = config.getoption("platform_report")
    if not paths or hasattr(config, "workerinput"):  # xdist's workers report to their controller
        return
    from doublecheck.errors import ReportError
    from doublecheck.reports import report
    from doublecheck.reports.collector import Collector

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
        from doublecheck.errors import ReportError
        from doublecheck.reports.report import Report, write
        from doublecheck.target.pytest_options import plan_of

        plan = plan_of(self._config)
        run = self._collector.run(int(session.exitstatus))
        report = Report(plan.name, plan.kind, plan.value("url"), run)
        for path in self._paths:
            try:
                write([report], path)
            except ReportError as error:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
                self._lines.append(str(error))
            else:
                self._lines.append(f"platform: {len(run.checks)} contract checks written to {path}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the paths of the reports."""
        for line in self._lines:
            terminalreporter.write_line(line)


_TITLE = "Captured platform calls"


def of_test() -> AbstractContextManager[None]:
    """Keep the calls of a test while the context lasts."""
    return call_log.of_test()


def add_section(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add the calls of a failed test to its report. Contract checks show their own."""
    log = call_log.current()
    if not report.failed or log is None or not log.calls or not _is_users(item):
        return
    from doublecheck.reports.captured_calls import section

    text = section(log)
    if text:
        report.sections.append((_TITLE, text))


def _is_users(item: pytest.Item) -> bool:
    from agentdouble.errors.tracebacks import origin_of

    return origin_of(str(item.path)) == "user"
