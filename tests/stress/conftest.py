"""The ``stress`` fixture, which checks each test that uses it and reports it in one line."""

from __future__ import annotations

import faulthandler
from collections.abc import Generator

import pytest

from tests.agentdouble.conftest import _clean_environment  # noqa: F401 (used by every test)
from tests.stress.tally import TALLY, Stress


@pytest.fixture
def stress(request: pytest.FixtureRequest) -> Stress:
    """Return the scale, the seed and the tally of this test."""
    config = request.config
    if config.getoption("--stress") == "long":
        faulthandler.cancel_dump_traceback_later()  # it takes longer than any test may
    return Stress(
        request.node.name.removeprefix("test_"),
        seed=config.getoption("--stress-seed"),
        long=config.getoption("--stress") == "long",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long stress tests take as long as they need."""
    if config.getoption("--stress") == "long":
        for item in items:
            if "stress" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check the tally of a stress test when it has finished, and report its line."""
    tally = pyfuncitem.funcargs.get("stress")
    if not isinstance(tally, Stress):
        return (yield)
    try:
        result = yield
        tally.check()
        return result
    finally:
        pyfuncitem.user_properties.append((TALLY, tally.line()))
