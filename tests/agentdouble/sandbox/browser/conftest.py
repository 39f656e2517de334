from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from agentdouble.sandbox.browser import chromium


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Return this machine's browser; without one, skip the test, or fail it in CI."""
    executable = chromium.find(None)
    if executable is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            f"needs Chromium: {chromium.INSTALL}"
        )
    return executable


@pytest.fixture(scope="session")
def browsing(chromium_path: str) -> Iterator[Emulator]:
    """A double with browsers enabled, shared by tests and never reset."""
    with Emulator(pool_size=0) as double:
        yield double
