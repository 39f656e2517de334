"""Checks of level should: they can fail, but they do not fail the run.

A failed should is reported, but the exit code ignores it. If it were hidden, it would not be a
recommendation; if it failed the run, it would be a must.
"""

from __future__ import annotations

from typing import Any

import pytest

LEVEL = "level"
VERDICT = "verdict"
SHOULD = "should"
FAILED = "failed"


def add(group: pytest.OptionGroup) -> None:
    """Add the option of this plugin."""
    group.addoption(
        "--platform-strict-should",
        action="store_true",
        help="a failed check of what is only recommended (should) fails the run",
    )


def configure(config: pytest.Config) -> None:
    """Register the plugin."""
    config.pluginmanager.register(ShouldLevel(config.getoption("platform_strict_should")))


class ShouldLevel:
    """A pytest plugin that ignores failed checks of level should in the exit code.

    They are shown like any other failure. With ``--platform-strict-should`` they fail the run.
    """

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._recommended = 0
        self._others = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the failures, and the recommendations among them."""
        if not report.failed:
            return
        told = dict(report.user_properties)
        if (told.get(LEVEL), told.get(VERDICT)) == (SHOULD, FAILED):
            self._recommended += 1
        else:
            self._others += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the run succeed if only recommendations failed."""
        failed = session.exitstatus == pytest.ExitCode.TESTS_FAILED
        if failed and self._forgives() and not self._others:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write how many failed recommendations were forgiven."""
        if self._forgives():
            terminalreporter.write_line(
                f"{self._recommended} failed of what is only recommended (should); "
                "--strict-should lets that fail the run (in pytest --platform-strict-should)."
            )

    def _forgives(self) -> bool:
        return not self._strict and self._recommended > 0
