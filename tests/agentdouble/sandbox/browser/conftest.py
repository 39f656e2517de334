from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from agentdouble.sandbox.browser import chromium, input_drivers


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The browser of this machine; without one the test is skipped, in CI it fails."""
    found = chromium.find(None)
    if found is None:
        _lacking("Chromium", chromium.INSTALL)
    if importlib.util.find_spec("playwright") is None:
        _lacking("Playwright", input_drivers.INSTALL)
    assert found is not None
    return found


def _lacking(what: str, remedy: str) -> None:
    reason = f"needs {what}: {remedy}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browsing(chromium_path: str) -> Iterator[Emulator]:
    """A double whose sessions have browsers; no test resets it."""
    with Emulator(pool_size=0) as double:
        yield double
