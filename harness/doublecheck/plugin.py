"""The pytest plugin: its hooks; the fixtures stand in ``doublecheck.fixtures``.

Every test run of an environment that has the harness loads this, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from doublecheck import traceback_filter as cutting
from doublecheck.contracts import should_level as leniency
from doublecheck.reports import options as reports
from doublecheck.target import pytest_options as options
from doublecheck.twins import options as twin
from doublecheck.unknowns_report import options as unknowns

pytest_plugins = ("doublecheck.fixtures",)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("doublecheck", "doublecheck: the platform that tests run against")
    options.add(group)
    options.add_ini(parser)
    leniency.add(group)
    unknowns.add(group)
    reports.add(group)
    twin.add(group)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clause(clause): the clause that a contract check checks")
    options.check(config)
    leniency.configure(config)
    unknowns.configure(config)
    reports.configure(config)
    twin.configure(config)


def pytest_report_header(config: pytest.Config) -> list[str] | None:
    return options.header(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield  # what the test raised is raised here, and says more
    from doublecheck.fixtures import faults  # not before pytest has: it rewrites its asserts

    faults.check(item)
    return result


@pytest.hookimpl(wrapper=True, trylast=True)  # innermost: other plugins see it as it is shown
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    cutting.cut(item, call, report)
    return report
