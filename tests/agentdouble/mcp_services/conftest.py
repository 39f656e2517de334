from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from tests.agentdouble.mcp_services.backend import Backend


@pytest.fixture(scope="module")
def _serving() -> Iterator[Backend]:
    with Backend().serving() as backend:
        yield backend


@pytest.fixture
def backend(_serving: Backend) -> Backend:
    """A running backend that has seen nothing yet."""
    _serving.clear()
    return _serving


@pytest.fixture(scope="module")
def services() -> Iterator[Emulator]:
    """A double for services; each test takes names of its own."""
    with Emulator() as double:
        yield double
