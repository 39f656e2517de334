"""Records which unknowns each test relied on, and the summary at the end of a test run."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck.core.notebook_repr import counted

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter  # noqa: TID251 (public from pytest 8.4)

    from doublecheck.compare.journal_reader import JournalReader
    from doublecheck.target.target import Target

_FIRST = 2

_WORDS = {"passed": "passes", "failed": "fails", "skipped": "is skipped"}

RELIED_ON = "platform_unknowns"
SWEPT = "platform_sweep"
_SERVER, _PLATFORM = _FIXTURES = ("_doublecheck_server", "_doublecheck_platform")


class Noting:
    """Records after each test which unknowns the double's answers relied on.

    They are read from the double's journal, because code under test has its own clients.
    ``running`` says that the double, and so its journal, is older than the tests.
    """

    def __init__(self, *, strict: bool, running: bool) -> None:
        self._strict = strict
        self._running = running
        self._journals: dict[str, JournalReader] = {}
        self.target: Target | None = None  # the target of the last test
        self.in_force: Mapping[str, str] = {}  # the answers of its double

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Skip the requests made before the tests began."""
        result = yield
        needed = self._running and fixturedef.argname == _SERVER
        if needed and getattr(result, "admin", False):
            self._journal(result).relied_on()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Skip the requests of the last test's teardown."""
        if not set(_FIXTURES).isdisjoint(getattr(item, "fixturenames", ())):
            for journal in self._journals.values():
                journal.relied_on()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record the unknowns relied on. In strict mode, fail a test that would pass."""
        try:
            result = yield
        finally:
            relied_on = self._relied_on(item)
            if relied_on:
                item.user_properties.append((RELIED_ON, ", ".join(relied_on)))
        if self._strict and relied_on and self.target:
            pytest.fail(self._journal(self.target).refusal(relied_on), pytrace=False)
        return result

    def pytest_unconfigure(self) -> None:
        for journal in self._journals.values():
            journal.close()

    def pytest_terminal_summary(
        self, terminalreporter: TerminalReporter, config: pytest.Config
    ) -> None:
        """Write two sections at the end of a test run; none if no test used a double."""
        lists = terminalreporter.stats.values()
        reports = [it for some in lists for it in some if isinstance(it, pytest.TestReport)]
        _write_relied_on(terminalreporter, _relied_on(reports), config.get_verbosity())
        if config.getoption("platform_sweep"):
            _write_swept(terminalreporter, _swept(reports))

    def _relied_on(self, item: pytest.Item) -> list[str]:
        self.target = _target(item)
        if self.target is None:
            return []
        journal = self._journal(self.target)
        relied_on = sorted(journal.relied_on())
        self.in_force = journal.in_force
        return relied_on

    def _journal(self, target: Target) -> JournalReader:
        """Return the reader of a double's journal, for entries that were not read yet."""
        from doublecheck.compare.journal_reader import JournalReader  # slow: 0.4 s

        if target.url not in self._journals:
            self._journals[target.url] = JournalReader(target)
        return self._journals[target.url]


def _target(item: pytest.Item) -> Target | None:
    """Return the double that a test uses, or None."""
    values = getattr(item, "funcargs", None) or {}
    target = values.get(_SERVER) or getattr(values.get(_PLATFORM), "target", None)
    return target if getattr(target, "admin", False) else None


def report_property(report: pytest.TestReport, name: str) -> str:
    """Return a property of a test's report, "" if it has none."""
    return str(dict(report.user_properties).get(name, ""))


def _relied_on(reports: Sequence[pytest.TestReport]) -> Mapping[str, list[str]]:
    """Return the tests, grouped by the unknowns that they relied on."""
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
    title = f"{counted(count, 'test')} relied on {counted(len(tests), 'unknown')}"
    if verbosity < 1:
        reporter.write_line(f"{title}, which the specification leaves open (-v shows them)")
        return
    reporter.section(f"{title}, which the specification leaves open", sep="-")
    for id_, names in tests.items():
        if verbosity > 1:
            lines = "".join(f"\n  {name}" for name in names)
        else:
            omitted = len(names) - _FIRST
            lines = f" {', '.join(names[:_FIRST])}{f' and {omitted} more' if omitted > 0 else ''}"
        reporter.write_line(f"{id_} ({counted(len(names), 'test')}):{lines}")


def _swept(reports: Sequence[pytest.TestReport]) -> Mapping[str, list[dict[str, Any]]]:
    """Return the results of the runs under alternatives, by test."""
    return {
        report.nodeid: json.loads(report_property(report, SWEPT))
        for report in reports
        if report.when == "call" and report_property(report, SWEPT)
    }


def _write_swept(reporter: TerminalReporter, swept: Mapping[str, list[dict[str, Any]]]) -> None:
    runs = sum(len(of_test) for of_test in swept.values())
    reporter.section(f"{counted(len(swept), 'test')} run {runs} times under alternatives", sep="-")
    sensitive = 0
    for test, of_test in sorted(swept.items()):
        changed = [run for run in of_test if run["outcome"] != run["before"]]
        sensitive += bool(changed)
        for run in changed:
            before, after = _WORDS[run["before"]], _WORDS[run["outcome"]]
            reporter.write_line(
                f"{test}: sensitive to {run['unknown']}: {before} with `{run['in_force']}`, "
                f"{after} with `{run['alternative']}`"
            )
    reporter.write_line(f"{sensitive} sensitive, {len(swept) - sensitive} not")
