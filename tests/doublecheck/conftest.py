from __future__ import annotations

import importlib
import logging
import os
import warnings
from collections.abc import Iterator

# A pytester run forgets what it has imported. Of cryptography there cannot be two copies in a
# process, and Hypothesis knows its strategies by their class.
import hypothesis.strategies  # noqa: F401
import pytest
import trustme  # noqa: F401

from agentdouble.sandbox.process_starter import _IMPORTS_FOR_WORKBENCHES
from doublecheck import Platform, Target
from doublecheck.client import log_filter
from tests.agentdouble.calling import TOKEN

with warnings.catch_warnings():  # the oldest typer uses what the newest click deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    importlib.import_module("typer.testing")

# Nor is what a double imports when it needs it: each run of pytester's would import it again.
_ACTIONS = "agentdouble.control_plane.actions"
for _name in (*_IMPORTS_FOR_WORKBENCHES, _ACTIONS):
    importlib.import_module(_name)


@pytest.fixture(scope="session", autouse=True)
def _doubles_of_nobody() -> Iterator[None]:
    """Hide the developer's settings from doubles, even from shared ones."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in [name for name in os.environ if name.startswith("AGENTDOUBLE_")]:
            if variable != "AGENTDOUBLE_BROWSER":
                patch.delenv(variable)
        patch.setenv("AGENTDOUBLE_TOKEN", TOKEN)
        yield


@pytest.fixture(scope="module", autouse=True)
def _loggers_as_before() -> Iterator[None]:
    """Restore loggers that notebooks quieten, once the module ends.

    Other modules of this process read the logs of a double.
    """
    before = {name: logging.getLogger(name) for name in log_filter._LEAST}
    settings = {name: (list(logger.handlers), logger.propagate) for name, logger in before.items()}
    yield
    for name, (handlers, propagate) in settings.items():
        before[name].handlers[:], before[name].propagate = handlers, propagate


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's own platform from tests."""
    for variable in [name for name in os.environ if name.startswith("DOUBLECHECK_")]:
        monkeypatch.delenv(variable)
    for variable in ("TOOL_ID", "TOOL_HOST", "TOOL_SCHEME", "TOOL_REGION", "TOOL_TTL"):
        monkeypatch.delenv(f"PLATFORM_{variable}", raising=False)
    for variable in ("ACCESS_KEY", "SECRET_KEY"):
        monkeypatch.delenv(f"PLATFORM_{variable}", raising=False)


@pytest.fixture(autouse=True)
def _quiet_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the pytest-asyncio options that runs of pytester need."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")  # it forgets the options of before
        monkeypatch.setenv("PYTEST_ADDOPTS", "-o asyncio_default_fixture_loop_scope=function")


@pytest.fixture
def client(target: Target) -> Iterator[Platform]:
    """A client of the double that a module serves as ``target``; it is as if it were new."""
    with Platform(target) as client:
        client.reset(keep=())
        yield client
