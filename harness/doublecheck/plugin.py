"""The pytest plugin: its hooks. The fixtures are in ``doublecheck.fixtures``.

Every test run of an environment with the harness loads this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from doublecheck.compare import pytest_unknowns
from doublecheck.contracts import exit_status
from doublecheck.reports import pytest_report
from doublecheck.target import pytest_options
from doublecheck.wire import call_log

pytest_plugins = ("doublecheck.fixtures",)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("doublecheck", "doublecheck: the platform that tests run against")
    pytest_options.add(group)
    exit_status.add(group)
    pytest_unknowns.add(group)
    pytest_report.add_option(group)
    group.addoption(
        "--model-record",
        action="store_true",
        help="record the answers of real models for platform_recorded_model, with the base URLs "
        "and keys in the environment",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clause(clause): the clause that a contract check checks")
    pytest_options.check(config)
    exit_status.configure(config)
    pytest_unknowns.configure(config)
    pytest_report.configure(config)
    if config.getoption("--model-record"):
        from doublecheck.fixtures import controls  # cycle: pytest rewrites its asserts first

        controls.configure(config)


def pytest_report_header(config: pytest.Config) -> list[str] | None:
    return pytest_options.header(config)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> None:
    if fixturedef.argname == "_doublecheck_server":
        # pytest would keep the first double for all folders, whichever platform_config they have
        fixturedef.cache_key = _config_of  # type: ignore[method-assign]


def _config_of(request: pytest.FixtureRequest) -> object:
    """Return the definition of ``platform_config`` that applies to a test."""
    return request._get_active_fixturedef("platform_config")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    with call_log.of_test():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield  # an error in the test is raised here; it says more
    from doublecheck.fixtures import controls  # cycle: pytest rewrites its asserts first

    controls.check(item)
    return result


# innermost, so that other plugins see the report as it is shown
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    pytest_report.cut(item, call, report)
    pytest_report.add_section(item, report)
    return report
