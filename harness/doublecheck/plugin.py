"""The pytest plugin: its options; the fixtures stand in ``doublecheck.fixtures``.

Every test run of an environment that has the harness loads this, so it imports nothing heavy.
"""

from __future__ import annotations

import pytest

from doublecheck.unknowns import options as unknowns

pytest_plugins = ("doublecheck.fixtures",)

_LIVE_IS_TWICE = (
    "A live platform is opted into twice: --platform-url says which one, and "
    "--platform-target=live says that it is meant."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("doublecheck", "doublecheck: the platform that tests run against")
    group.addoption(
        "--platform-target",
        choices=("double", "live"),
        default="double",
        help="what the platform is: a double (default), or a live one, with --platform-url",
    )
    group.addoption(
        "--platform-url",
        metavar="URL",
        help="where the platform runs already (default: a double is started in this process)",
    )
    group.addoption(
        "--platform-reference-app",
        action="store_true",
        help="the platform at --platform-url runs the reference application of the checks",
    )
    unknowns.add(group)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clause(clause): the clause that a contract check checks")
    unknowns.configure(config)
    if config.getoption("platform_url"):
        return
    if config.getoption("platform_target") == "live":
        raise pytest.UsageError(f"--platform-target=live needs --platform-url. {_LIVE_IS_TWICE}")
    if config.getoption("platform_reference_app"):
        raise pytest.UsageError("--platform-reference-app is about the platform at --platform-url.")


def pytest_report_header(config: pytest.Config) -> str | None:
    url = config.getoption("platform_url")
    return f"platform: {config.getoption('platform_target')} at {url}" if url else None
