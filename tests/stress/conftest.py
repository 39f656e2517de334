"""The ``stress`` fixture: each test that takes it is checked and told in one line at the end."""

from __future__ import annotations

import faulthandler
from collections.abc import Generator

import pytest

from tests.stress.tally import Stress

_TALLIES = pytest.StashKey[list[Stress]]()


@pytest.fixture
def stress(request: pytest.FixtureRequest) -> Stress:
    """The scale, the seed and the tally of this test."""
    config = request.config
    if config.getoption("--stress") == "long":
        faulthandler.cancel_dump_traceback_later()  # it takes longer than any test may
    tally = Stress(
        request.node.name.removeprefix("test_"),
        seed=config.getoption("--stress-seed"),
        long=config.getoption("--stress") == "long",
    )
    config.stash.setdefault(_TALLIES, []).append(tally)
    return tally


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check the tally of a stress test when it has come to its end."""
    result = yield
    tally = pyfuncitem.funcargs.get("stress")
    if isinstance(tally, Stress):
        tally.check()
    return result


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print a line for each stress test."""
    tallies = config.stash.get(_TALLIES, [])
    if tallies:
        terminalreporter.section("stress")
    for tally in tallies:
        terminalreporter.line(tally.line())
