"""Record which unknowns each test relied on, and fail the test for that with --platform-strict."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform
    from doublecheck.target.target import Target

RELIED_ON = "platform_unknowns"
SWEPT = "platform_sweep"
_HEADER = "x-agentdouble-unknowns"
_SERVER, _PLATFORM = _FIXTURES = ("_doublecheck_server", "_doublecheck_platform")


class Noting:
    """Records after each test which unknowns the double's answers relied on.

    Answers name the unknowns in a header. It is read from the double's journal, because code under
    test has its own clients. ``shared`` says that other workers use the same double: its journal
    then also has their requests, so only the answers to the fixtures' own Platform count. ``running``
    says that the double, and so its journal, is older than the tests.
    """

    def __init__(self, *, strict: bool, running: bool, shared: bool) -> None:
        self._strict = strict
        self._running = running
        self._shared = shared
        self._journals: dict[str, _Journal] = {}
        self.target: Target | None = None  # the target of the last test
        self.in_force: Mapping[str, str] = {}  # the answers of its double

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Skip the requests made before the tests began."""
        result = yield
        needed = self._running and not self._shared and fixturedef.argname == _SERVER
        if needed and getattr(result, "admin", False):
            self._journal(result).relied_on()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Skip the requests of the last test's teardown."""
        if not self._shared and not set(_FIXTURES).isdisjoint(getattr(item, "fixturenames", ())):
            for journal in self._journals.values():
                journal.relied_on()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record the unknowns relied on; in strict mode, fail a test that would pass."""
        try:
            result = yield
        finally:
            relied_on = self._relied_on(item)
            if relied_on:
                item.user_properties.append((RELIED_ON, ", ".join(relied_on)))
        if self._strict and relied_on:
            pytest.fail(_refusal(relied_on), pytrace=False)
        return result

    def pytest_unconfigure(self) -> None:
        for journal in self._journals.values():
            journal.close()

    def _relied_on(self, item: pytest.Item) -> list[str]:
        self.target = _target(item)
        if self.target is None:
            return []
        if self._shared:
            return sorted(_by_headers(item.funcargs.get(_PLATFORM)))  # type: ignore[attr-defined]
        journal = self._journal(self.target)
        relied_on = sorted(journal.relied_on())
        self.in_force = journal.in_force
        return relied_on

    def _journal(self, target: Target) -> _Journal:
        """Return the reader of a double's journal, for entries that were not read yet."""
        if target.url not in self._journals:
            self._journals[target.url] = _Journal(target)
        return self._journals[target.url]


class _Journal:
    """A double's journal that yields each entry once."""

    def __init__(self, target: Target) -> None:
        from doublecheck.client._sync.platform import Platform

        self._platform = Platform(target, timeout_s=10)
        self._last = 0
        self.in_force: Mapping[str, str] = {}

    def relied_on(self) -> frozenset[str]:
        """Return the unsettled unknowns that the entries since the last call relied on.

        The result is empty if the double does not answer, because a test may have stopped it.
        """
        from doublecheck.errors import DoubleCheckError
        from doublecheck.wire import admin

        try:
            usage = self._platform._call(admin.unknowns(self._platform.target, self._last))
        except DoubleCheckError:
            return frozenset()
        self._last, self.in_force = usage.last, usage.in_force
        return usage.relied_on - usage.settled

    def close(self) -> None:
        self._platform.close()


def _target(item: pytest.Item) -> Target | None:
    """Return the double that a test uses, or None."""
    values = getattr(item, "funcargs", None) or {}
    target = values.get(_SERVER) or getattr(values.get(_PLATFORM), "target", None)
    return target if getattr(target, "admin", False) else None


def report_property(report: pytest.TestReport, name: str) -> str:
    """Return a property of a test's report, "" if it has none."""
    return str(dict(report.user_properties).get(name, ""))


def _by_headers(platform: Platform | None) -> set[str]:
    named: set[str] = set()
    for exchange in getattr(platform, "exchanges", ()):
        headers = {name.lower(): value for name, value in exchange.headers.items()}
        named.update(headers.get(_HEADER, "").replace(",", " ").split())
    return named


def _refusal(relied_on: list[str]) -> str:
    from agentdouble import ledger

    return (
        f"--platform-strict: this test relies on {', '.join(relied_on)}, which the specification "
        "leaves open and no profile settles. 'doublecheck calibrate' asks a deployment and writes "
        "one; an answer that you know, of those of 'agentdouble unknowns', is a line of its "
        f'[unknowns]: {relied_on[0]} = "{ledger.find(relied_on[0]).default.name}".'
    )
