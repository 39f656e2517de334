from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from tests import machine


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """This machine's browser."""
    return machine.require_browser()


@pytest.fixture(scope="session")
def browsing(chromium_path: str) -> Iterator[Emulator]:
    """A double with browsers enabled, shared by tests and never reset."""
    with Emulator(pool_size=0) as double:
        yield double
