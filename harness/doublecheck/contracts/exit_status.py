"""The exit status of a pytest run with contract checks.

A failed recommendation ("should") is reported but does not change the exit status: if it were
hidden, it would not be a recommendation; if it failed the run, it would be a must. A platform that
could not be reached has not failed, and a run in which every check was skipped is not green.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from doublecheck.core.exit_codes import ExitCode
from doublecheck.target import pytest_options

CLAUSE = "clause"
LEVEL = "level"
VERDICT = "verdict"
BASELINE, KNOWN = "baseline", "known failure"
REASON = "reason"
COULD_NOT_ASK, ERROR = "could not ask", "error"
NOT_ASKED = (COULD_NOT_ASK, ERROR)
_YELLOW = {"yellow": True}
LEFT_OUT = pytest.StashKey[tuple[str, ...]]()  # declared surfaces without a check at the level


def left_out(level: str, surfaces: Sequence[str]) -> str:
    """Return the note about the declared surfaces that a level leaves out."""
    return f"Not checked at level {level}: {', '.join(surfaces)}; use --level full"


def add(group: pytest.OptionGroup) -> None:
    """Add the option of this plugin."""
    group.addoption(
        "--platform-strict-should",
        action="store_true",
        help="failed recommendations (should) fail the run",
    )


def configure(config: pytest.Config) -> None:
    """Register the plugin."""
    config.pluginmanager.register(ExitStatus(config.getoption("platform_strict_should")))


class ExitStatus:
    """A pytest plugin that sets the exit status of a run with contract checks.

    Failed recommendations are shown like any other failure, but fail the run only with
    ``--platform-strict-should``. Other tests count as usual.
    """

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._counts: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count failures by their meaning, and passed tests."""
        properties = dict(report.user_properties)
        if report.failed:
            self._counts[_failure(properties)] += 1
        elif properties.get(BASELINE) == KNOWN:
            self._counts["known"] += 1
        elif report.when == "call" and report.passed:
            self._counts["passed"] += 1
        self._counts["checks"] += report.when == "setup" and CLAUSE in properties

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Set the exit status, unless something other than a check failed."""
        counts = self._counts
        if exitstatus == pytest.ExitCode.TESTS_FAILED:
            if not counts["failed"] and (self._forgives() or not counts["recommended"]):
                answered_all = not counts["not asked"]
                session.exitstatus = ExitCode.PASSED if answered_all else ExitCode.COULD_NOT_ASK
        elif exitstatus == pytest.ExitCode.OK and self._nothing_checked():
            session.exitstatus = ExitCode.NOTHING_CHECKED

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, Mapping[str, bool]]] | None:
        """Return the category, the letter and the word of a check that did not simply fail."""
        if isinstance(report, pytest.CollectReport):  # a module that is skipped as a whole
            return None
        properties = dict(report.user_properties)
        if report.skipped and properties.get(BASELINE) == KNOWN:
            return "known", "k", ("KNOWN", _YELLOW)
        if report.failed and properties.get(VERDICT) == COULD_NOT_ASK:
            return COULD_NOT_ASK, "?", ("COULD NOT ASK", _YELLOW)
        if report.failed and properties.get(VERDICT) == ERROR:
            return ERROR, "E", ("ERROR", {"red": True})
        return None

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Report how many recommendations failed, what could not be asked, and what is left out."""
        if config.option.tbstyle != "no":
            reports = terminalreporter.stats.get(COULD_NOT_ASK, ())
            reasons = Counter(str(dict(it.user_properties).get(REASON)) for it in reports)
            for reason, count in reasons.items():
                terminalreporter.write_line(f"{count} could not ask: {reason}")
        if surfaces := config.stash.get(LEFT_OUT, ()):
            level = pytest_options.plan_of(config).value("level")
            terminalreporter.write_line(f"{left_out(level, surfaces)} (--platform-level full).")
        if self._forgives():
            terminalreporter.write_line(
                f"{self._counts['recommended']} failed recommendations (should) do not fail the "
                "run; --strict-should makes them (in pytest --platform-strict-should)."
            )
        if self._nothing_checked():
            terminalreporter.write_line("Nothing was checked: no contract check passed or failed.")

    def _nothing_checked(self) -> bool:
        """Whether every contract check was skipped, and no other test passed or failed."""
        verdicts = ("passed", "failed", "recommended", "known", "not asked")
        return self._counts["checks"] > 0 and not any(self._counts[verdict] for verdict in verdicts)

    def _forgives(self) -> bool:
        return not self._strict and self._counts["recommended"] > 0


def _failure(properties: dict[str, Any]) -> str:
    """Return the category of a failed report."""
    if properties.get(VERDICT) in NOT_ASKED:
        return "not asked"
    recommended = properties.get(LEVEL) == "should" and properties.get(VERDICT) == "failed"
    return "recommended" if recommended else "failed"
