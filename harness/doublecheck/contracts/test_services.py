"""Checks of MCP services: their access records and their backends (SVC)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from agentdouble.mcp_services import McpBackend
from doublecheck.client._sync.mcp import McpClient
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import for_each
from doublecheck.contracts.mcp_servers import (
    Make,
    Service,
    client,
    is_refused,
    structured_of,
    text_of,
)
from doublecheck.contracts.reference import http_api
from doublecheck.wire import mcp
from doublecheck.wire.mcp import McpServer


@pytest.fixture
def direct(platform: Platform) -> McpServer:
    """The MCP application that services stand in front of."""
    return McpServer.at(platform.target, mcp.PATH, None, None)


@pytest.fixture
def through(service: Service) -> Iterator[McpClient]:
    """A client of the service."""
    with service.client() as mcp:
        yield mcp


@clause("SVC-01", writes=True)
def test_a_service_lists_the_tools_of_its_backend(
    platform: Platform, service: Service, direct: McpServer
) -> None:
    """The same ones, with the same descriptions and schemas, each time."""
    with client(platform, direct) as there, service.client() as through:
        expected = sorted(there.tools(), key=lambda tool: tool.name)
        assert expected
        for _ in range(2):
            assert expected == sorted(through.tools(), key=lambda tool: tool.name)


@clause("SVC-01", writes=True, reference_app=True)
@for_each(cost=2, text=inputs.texts())
def test_the_tools_of_a_backend_work_through_its_service(through: McpClient, text: str) -> None:
    """Arguments and results pass whole, also structured ones, and each call is a new one."""
    assert f"{text} {text}" == text_of(through.call("join", first=text, second=f" {text}"))
    assert text == structured_of(through.call("facts", text=text)).get("text")
    assert str(len(text) + 1) == text_of(through.call("add", a=len(text), b=1))


@clause("SVC-01", writes=True, reference_app=True)
def test_an_error_of_a_backend_is_one_through_its_service(through: McpClient) -> None:
    """The next call has a result."""
    for tool, given in (("add", {"a": "many", "b": 1}), ("nobodys", {}), ("join", {})):
        assert is_refused(through, tool, given), f"{tool}({given}) is told as a success"
        assert "5" == text_of(through.call("add", a=2, b=3))


@clause("SVC-01", writes=True)
def test_each_service_has_its_own_backend(service: Service, make_service: Make) -> None:
    """Two services in front of two servers list the tools of their own one."""
    with http_api.serving() as api:
        things = make_service(http_api.definition(api.address))
        server = things.server
        other = make_service(McpBackend(server.url, headers=dict(server.headers)))
        names = {}
        for name, one in (("one", service), ("behind", things), ("other", other)):
            with one.client() as tools:
                names[name] = sorted(tool.name for tool in tools.tools())

    assert names["one"] != names["behind"]
    assert names["behind"] == names["other"]


@clause("SVC-03", writes=True)
def test_the_access_record_has_the_specified_shape(
    service: Service, make_service: Make, direct: McpServer
) -> None:
    """Each record maps its own service alone to an address and a key; these are its own."""
    services = [service, make_service(direct.url), make_service(direct.url)]
    for one in services:
        url, headers = one.access.get("httpUrl"), one.access.get("headers")
        assert isinstance(url, str), one.record
        assert isinstance(headers, dict), one.record
        authorization = headers.get("Authorization")
        assert isinstance(authorization, str), one.record
        scheme, _, key = authorization.partition(" ")

        assert ["mcpServers"] == list(one.record), one.record
        assert [one.name] == list(one.record["mcpServers"]), one.record
        assert urlsplit(url).scheme in ("http", "https"), url
        assert urlsplit(url).netloc, url
        assert f"/mcp/{one.name}" == url[-len(f"/mcp/{one.name}") :]
        assert ("Bearer", True) == (scheme, bool(key)), f"no key in {authorization!r}"

    assert 3 == len({one.access["headers"]["Authorization"] for one in services})
    gateways = {one.access["httpUrl"].removesuffix(f"/mcp/{one.name}") for one in services}
    assert 1 == len(gateways), gateways


@clause("SVC-03", writes=True)
def test_the_access_record_gives_access(service: Service) -> None:
    """A client that knows nothing else opens a session, each time."""
    for _ in range(2):
        with service.client() as mcp:
            assert mcp.tools()
