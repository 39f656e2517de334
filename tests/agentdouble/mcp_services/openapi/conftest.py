from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agentdouble.mcp_services.openapi import backend
from tests.ports import served


@pytest.fixture(scope="session")
def api() -> Iterator[str]:
    """The base URL of a real HTTP API."""
    with served(backend.app()) as url:
        yield url
