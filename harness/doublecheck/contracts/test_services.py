"""Checks of MCP services: their access record, their keys and their backends (MCP, SVC)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from doublecheck.client._sync.mcp import McpClient
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.errors import RefusedError

Record = Mapping[str, Any]
Make = Callable[[Any], tuple[str, Record]]


@pytest.fixture
def make(platform: Platform, leftovers: Leftovers) -> Make:
    """A function that makes a service in front of a backend and returns its access record."""
    make_service, drop_service = platform.target.make_service, platform.target.drop_service
    if make_service is None or drop_service is None:
        pytest.skip("not run: services are made on a double in this process alone")

    def make(backend: Any) -> tuple[str, Record]:
        name = f"doublecheck-{uuid.uuid4().hex}"
        leftovers.add(lambda: drop_service(name))
        return name, make_service(name, backend)

    return make


@clause("MCP-01", writes=True)
def test_a_service_speaks_mcp_at_its_address(platform: Platform, make: Make) -> None:
    """A session is opened, used and closed."""
    name, record = make(f"{platform.target.url}/mcp")
    with _client(platform, name, record) as mcp:
        assert {} == mcp.ask("ping")
        assert mcp.tools()


@clause("MCP-02", writes=True)
@pytest.mark.parametrize("sent", [{}, {"Authorization": "Bearer wrong"}], ids=["missing", "wrong"])
def test_a_request_without_a_key_of_the_service_is_refused(
    platform: Platform, make: Make, sent: dict[str, str]
) -> None:
    """The status is 401 or 403 (U-MCP-UNAUTHORIZED), and the answer contains nothing else."""
    name, record = make(f"{platform.target.url}/mcp")

    with pytest.raises(RefusedError) as refused:
        McpClient.tools(platform.mcp(record["mcpServers"][name]["httpUrl"], headers=sent))

    assert refused.value.status in (401, 403), refused.value


@clause("SVC-01", writes=True)
def test_the_tools_of_a_backend_work_through_its_service(platform: Platform, make: Make) -> None:
    """The service lists the same tools, and a call has the same answer as without the service."""
    name, record = make(f"{platform.target.url}/mcp")
    with platform.mcp() as direct, _client(platform, name, record) as through:
        assert direct.tools() == through.tools()
        assert direct.call("add", a=2, b=3) == through.call("add", a=2, b=3)


@clause("SVC-02", writes=True)
def test_each_operation_of_a_definition_is_a_tool(
    platform: Platform, make: Make, leftovers: Leftovers
) -> None:
    """A Swagger definition of the platform's own API becomes tools that call it."""
    name, record = make(_definition(platform.target.url))
    user, app = uuid.uuid4().hex, platform.list_apps()[0]
    leftovers.user(app, user)
    with _client(platform, name, record) as mcp:
        tools = {tool.name: tool for tool in mcp.tools()}
        apps = mcp.call("listApps")
        session = mcp.call("createSession", app=app, user=user)

    assert {"listApps", "createSession"} == tools.keys()
    assert {"app", "user"} == set(tools["createSession"].input_schema["required"])
    assert "List the agents." in tools["listApps"].description
    assert all(app in apps.text for app in platform.list_apps()), apps.text
    assert user == (session.structured or {}).get("userId"), session.text


@clause("SVC-03", writes=True)
def test_the_access_record_has_the_specified_shape(platform: Platform, make: Make) -> None:
    """The address is the gateway's with ``/mcp/<service_name>``; the key is a Bearer token."""
    name, record = make(f"{platform.target.url}/mcp")
    access = record.get("mcpServers", {}).get(name, {})
    authorization = access.get("headers", {}).get("Authorization", "")
    expected = {
        "httpUrl": f"{platform.target.url}/mcp/{name}",
        "headers": {"Authorization": authorization},
    }

    assert {"mcpServers": {name: expected}} == record
    scheme, _, key = authorization.partition(" ")
    assert ("Bearer", True) == (scheme, bool(key)), f"no key in {authorization!r}"


def _client(platform: Platform, name: str, record: Record) -> McpClient:
    """Return a client that uses the access record."""
    access = record["mcpServers"][name]
    return platform.mcp(access["httpUrl"], headers=access["headers"])


def _definition(url: str) -> dict[str, Any]:
    """Return a Swagger definition of two operations of the API server."""
    segments = [
        {"name": name, "in": "path", "required": True, "type": "string"} for name in ("app", "user")
    ]
    answers = {"200": {"description": "as it is"}}
    create = {"operationId": "createSession", "parameters": segments, "responses": answers}
    listed = {"operationId": "listApps", "summary": "List the agents.", "responses": answers}
    return {
        "swagger": "2.0",
        "info": {"title": "agents", "version": "1"},
        "host": urlsplit(url).netloc,
        "schemes": [urlsplit(url).scheme],
        "paths": {
            "/list-apps": {"get": listed},
            "/apps/{app}/users/{user}/sessions": {"post": create},
        },
    }
