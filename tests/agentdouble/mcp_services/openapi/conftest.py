from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread
from tests.agentdouble.mcp_services.openapi import backend


@pytest.fixture(scope="session")
def api() -> Iterator[str]:
    """The base URL of a real HTTP API."""
    listener = open_socket("127.0.0.1", 0)
    server = ServerThread(backend.app(), listener)
    url = address_of(listener)
    server.start()
    yield url
    server.stop()
