"""Reporting from a pytest run, also one whose tests xdist's workers carry out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from doublecheck.errors import ReportError
from doublecheck.reports import formats
from doublecheck.reports import write as writing
from doublecheck.reports.collector import Collector
from doublecheck.reports.report import Report
from doublecheck.target import pytest_options as options


class Reporting:
    """A pytest plugin that writes reports when the run has ended, whatever ended it."""

    def __init__(self, config: pytest.Config, paths: Sequence[Path]) -> None:
        self._config = config
        self._paths = paths
        self._collector = Collector()
        self._told: list[str] = []
        config.pluginmanager.register(self._collector, "doublecheck-collector")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the reports."""
        plan = options.plan_of(self._config)
        run = self._collector.run(int(session.exitstatus))
        report = Report(plan.name, plan.kind, plan.value("url"), run)
        for path in self._paths:
            try:
                writing.write(formats.rendered([report], path), path)
            except ReportError as error:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
                self._told.append(str(error))
            else:
                self._told.append(f"platform: {len(run.checks)} contract checks told in {path}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where they are."""
        for line in self._told:
            terminalreporter.write_line(line)
