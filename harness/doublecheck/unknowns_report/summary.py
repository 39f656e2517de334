"""The summary at the end: which tests relied on which unknowns, and which depend on the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck.unknowns_report.usage import RELIED_ON, report_property

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

SWEPT = "platform_sweep"
_FIRST = 2
_WORDS = {"passed": "passes", "failed": "fails", "skipped": "is skipped"}


class Summary:
    """Two sections at the end of a test run; none if no test used a double."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Write the sections."""
        reports = list(_reports(terminalreporter))
        verbosity = self._config.get_verbosity()
        _write_relied_on(terminalreporter, _relied_on(reports), verbosity)
        if self._config.getoption("platform_sweep"):
            _write_swept(terminalreporter, _swept(reports))


def _reports(reporter: TerminalReporter) -> Iterator[pytest.TestReport]:
    for reports in reporter.stats.values():
        yield from (one for one in reports if isinstance(one, pytest.TestReport))


def _relied_on(reports: Sequence[pytest.TestReport]) -> Mapping[str, list[str]]:
    """Return the tests by the unknowns that they relied on."""
    tests: dict[str, list[str]] = {}
    for report in reports:
        if report.when == "call":
            for id_ in report_property(report, RELIED_ON).split(", "):
                tests.setdefault(id_, []).append(report.nodeid)
    tests.pop("", None)
    return dict(sorted(tests.items()))


def _write_relied_on(
    reporter: TerminalReporter, tests: Mapping[str, list[str]], verbosity: int
) -> None:
    if not tests:
        return
    count = len({test for names in tests.values() for test in names})
    title = f"{_tests(count)} relied on {_unknowns(len(tests))}"
    if verbosity < 1:
        reporter.write_line(f"{title}, which the specification leaves open (-v shows them)")
        return
    reporter.section(f"{title}, which the specification leaves open", sep="-")
    for id_, names in tests.items():
        shown = names if verbosity > 1 else names[:_FIRST]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        separator = "\n  " if verbosity > 1 else ", "
        first = separator if verbosity > 1 else " "
        reporter.write_line(f"{id_} ({_tests(len(names))}):{first}{separator.join(shown)}{more}")


def _swept(reports: Sequence[pytest.TestReport]) -> Mapping[str, list[dict[str, Any]]]:
    """Return the results of the runs under alternatives, by test."""
    return {
        report.nodeid: json.loads(report_property(report, SWEPT))
        for report in reports
        if report.when == "call" and report_property(report, SWEPT)
    }


def _write_swept(reporter: TerminalReporter, swept: Mapping[str, list[dict[str, Any]]]) -> None:
    runs = sum(len(of_test) for of_test in swept.values())
    reporter.section(f"{_tests(len(swept))} run {runs} times under alternatives", sep="-")
    sensitive = 0
    for test, of_test in sorted(swept.items()):
        changed = [one for one in of_test if one["outcome"] != one["before"]]
        sensitive += bool(changed)
        for one in changed:
            reporter.write_line(f"{test}: {sensitivity(one)}")
    reporter.write_line(f"{sensitive} sensitive, {len(swept) - sensitive} not")


def sensitivity(run: Mapping[str, Any]) -> str:
    """Describe in words how a test reacts to an alternative."""
    before, after = _WORDS[run["before"]], _WORDS[run["outcome"]]
    return (
        f"sensitive to {run['unknown']}: {before} with `{run['in_force']}`, "
        f"{after} with `{run['alternative']}`"
    )


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


def _unknowns(count: int) -> str:
    return "1 unknown" if count == 1 else f"{count} unknowns"
