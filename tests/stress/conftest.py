"""The ``stress`` fixture: each test that takes it is checked and told in one line at the end."""

from __future__ import annotations

import faulthandler
from collections.abc import Generator

import pytest

from tests.agentdouble.conftest import _clean_environment  # noqa: F401 (used by every test)
from tests.stress.tally import TALLY, Stress


@pytest.fixture
def stress(request: pytest.FixtureRequest) -> Stress:
    """The scale, the seed and the tally of this test."""
    config = request.config
    if config.getoption("--stress") == "long":
        faulthandler.cancel_dump_traceback_later()  # it takes longer than any test may
    return Stress(
        request.node.name.removeprefix("test_"),
        seed=config.getoption("--stress-seed"),
        long=config.getoption("--stress") == "long",
    )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check the tally of a stress test when it has come to its end, and have its line reported."""
    tally = pyfuncitem.funcargs.get("stress")
    if not isinstance(tally, Stress):
        return (yield)
    try:
        result = yield
        tally.check()
        return result
    finally:
        pyfuncitem.user_properties.append((TALLY, tally.line()))
