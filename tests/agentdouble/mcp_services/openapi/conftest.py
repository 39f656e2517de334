from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import serving
from tests.agentdouble.mcp_services.openapi import backend


@pytest.fixture(scope="session")
def api() -> Iterator[str]:
    """The base URL of a real HTTP API."""
    listener = serving.open_socket("127.0.0.1", 0)
    server = serving.ServerThread(backend.app(), listener)
    url = serving.address_of(listener)
    server.start()
    yield url
    server.stop()
