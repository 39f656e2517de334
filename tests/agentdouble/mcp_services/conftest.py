from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from tests.agentdouble.mcp_services.backend import Backend
from tests.agentdouble.mcp_services.openapi import backend as http_api
from tests.ports import served


@pytest.fixture(scope="module")
def _serving() -> Iterator[Backend]:
    with Backend().serving() as backend:
        yield backend


@pytest.fixture
def backend(_serving: Backend) -> Backend:
    """A running backend without recorded requests."""
    _serving.clear()
    return _serving


@pytest.fixture(scope="module")
def services() -> Iterator[Emulator]:
    """A double for services; each test uses new names."""
    with Emulator() as double:
        yield double


@pytest.fixture(scope="session")
def api() -> Iterator[str]:
    """The base URL of a real HTTP API."""
    with served(http_api.app()) as url:
        yield url
