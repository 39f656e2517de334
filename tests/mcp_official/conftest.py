from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.mcp_services import McpBackend, ServerBackend
from tests import machine
from tests.agentdouble.conftest import _clean_environment  # noqa: F401 (used by every test)
from tests.mcp_official import everything, ordinary
from tests.mcp_official.everything.state import Events
from tests.mcp_official.keyed import keyed
from tests.mcp_official.suite import NotInstalledError, Suite, find_node
from tests.ports import served

DIRECT, FRONT = "everything", "front"
ORDINARY, ORDINARY_FRONT = "ordinary", "ordinary-front"
APP = "app"


@pytest.fixture(scope="package")
def double() -> Iterator[Emulator]:
    """A double with the server and the application, each with a service in front of it.

    The application also answers at ``/mcp``.
    """
    with Emulator(ordinary.application(), pool_size=0) as double:
        server = ServerBackend(everything.server, event_store=Events(), retry_interval_ms=20)
        double.mcp.create(DIRECT, server)
        double.mcp.create(ORDINARY, ordinary.application())
        for name, front in ((DIRECT, FRONT), (ORDINARY, ORDINARY_FRONT)):
            behind = server_of(double, name)
            double.mcp.create(front, McpBackend(behind["httpUrl"], behind["headers"]))
        yield double


def server_of(double: Emulator, service: str) -> dict[str, Any]:
    """Return the service's ``httpUrl`` and ``headers`` from its access record."""
    server: dict[str, Any] = double.mcp.record(service)["mcpServers"][service]
    return server


@pytest.fixture(scope="package")
def suite(pytestconfig: pytest.Config) -> Suite:
    """Install the conformance suite once, into pytest's cache."""
    try:
        cache = pytestconfig.cache
        assert cache is not None, "the suite is installed into pytest's cache"
        installed = Suite(find_node(), cache.mkdir("mcp-conformance"))
        installed.install()
    except NotInstalledError as error:
        machine.lack(str(error))
    return installed


@pytest.fixture(scope="package")
def with_key(double: Emulator) -> Iterator[Callable[[str], str]]:
    """Return a function that gives a service's address behind a proxy that adds the key."""
    with ExitStack() as stack:
        addresses = {APP: f"{double.url}/mcp"}
        for service in (DIRECT, FRONT, ORDINARY, ORDINARY_FRONT):
            _, key = server_of(double, service)["headers"]["Authorization"].split()
            proxy = stack.enter_context(served(keyed(double.url, key)))
            addresses[service] = f"{proxy}/mcp/{service}"
        yield addresses.__getitem__
