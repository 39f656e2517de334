"""``--platform-target=both``: tests use a live platform, and a double is compared with it."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck.sanitize import without_controls
from doublecheck.target import pytest_options

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from doublecheck.twins.comparison import Compared

COMPARED = "platform_twin"
_CALLS = pytest.StashKey["Sequence[Compared]"]()
_HARMLESS = ("assumed", "same")
_ORDER = ("diverges", "only live", "only double", *_HARMLESS)


def add(group: pytest.OptionGroup) -> None:
    """Add the option to the plugin's group."""
    group.addoption(
        "--platform-twin-strict",
        action="store_true",
        help="with --platform-target=both: fail tests in which the double answers differently",
    )


def configure(config: pytest.Config) -> None:
    """Apply the options; raise UsageError for a wrong combination."""
    strict = config.getoption("platform_twin_strict")
    if pytest_options.both(config):
        config.pluginmanager.register(Twinning(strict=strict), "doublecheck-twin")
    elif strict:
        raise pytest.UsageError("--platform-twin-strict is about --platform-target=both.")


def keep(item: pytest.Item, calls: Sequence[Compared]) -> None:
    """Store the calls of a running test."""
    item.stash[_CALLS] = calls


class Twinning:
    """A pytest plugin that reports the differences at the end and, if strict, fails tests."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record the differences; in strict mode, fail a test that would pass."""
        try:
            result = yield
        finally:
            calls = [_call_document(call) for call in item.stash.get(_CALLS, ())]
            if calls:
                item.user_properties.append((COMPARED, json.dumps(calls)))
        differing = [call for call in calls if call["class"] not in _HARMLESS]
        if self._strict and differing:
            told = "\n".join(_lines(differing))
            pytest.fail(f"The double and the live platform differ:\n{told}", pytrace=False)
        return result

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Write the differences of each test."""
        tests = dict(_tests(terminalreporter))
        calls = [call for of_test in tests.values() for call in of_test]
        if not calls:
            return
        terminalreporter.section(f"double and live platform: {_summary(calls)}", sep="-")
        for test, of_test in tests.items():
            differing = [call for call in of_test if call["class"] not in _HARMLESS]
            for line in [f"{test}:", *_lines(differing)] if differing else ():
                terminalreporter.write_line(line)


def _call_document(call: Compared) -> dict[str, Any]:
    shown = [without_controls(str(one)) for one in call.differences if not one.because]
    return {"operation": call.operation, "class": call.cls.value, "differences": shown}


def _tests(
    reporter: TerminalReporter,
) -> Generator[tuple[str, Sequence[Mapping[str, Any]]], None, None]:
    for reports in reporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                told = dict(report.user_properties).get(COMPARED)
                if told:
                    yield report.nodeid, json.loads(str(told))


def _summary(calls: Sequence[Mapping[str, Any]]) -> str:
    counts = {cls: sum(call["class"] == cls for call in calls) for cls in _ORDER}
    return ", ".join(f"{count} {cls}" for cls, count in counts.items() if count)


def _lines(calls: Sequence[Mapping[str, Any]]) -> Generator[str, None, None]:
    for call in calls:
        yield f"  {without_controls(call['operation'])}: {call['class']}"
        yield from (f"    {one}" for one in call["differences"])
