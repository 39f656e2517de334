"""The MCP servers under test: services in front of backends, and messages to them."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from agentdouble.errors import UnknownServiceError
from doublecheck.client._sync.mcp import McpClient
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.engine import for_caller
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.sentences import short
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError
from doublecheck.values.agents import McpResult
from doublecheck.wire import mcp
from doublecheck.wire.mcp import McpServer, McpSession

NOT_MADE = "not run: services are only created on a double in this process"

Message = Mapping[str, Any]


@dataclass(frozen=True)
class CheckedService:
    """An MCP service: its name, and its raw access record."""

    platform: Platform
    name: str
    record: Any

    @property
    def access(self) -> Mapping[str, Any]:
        """Return the record's entry for the name. Fail if it is not an object of 2.5."""
        servers = self.record.get("mcpServers") if isinstance(self.record, dict) else None
        assert isinstance(servers, dict), f"mcpServers is not an object: {self.record}"
        entry = servers.get(self.name)
        assert isinstance(entry, dict), f"{self.name} is not mapped to an object: {self.record}"
        return entry

    @property
    def server(self) -> McpServer:
        """The server that the record names."""
        return McpServer(str(self.access.get("httpUrl")), self.access.get("headers") or {})

    def client(self) -> McpClient:
        """Return a client that uses the record."""
        return client(self.platform, self.server)

    def delete(self) -> None:
        """Delete the service, if it still exists."""
        drop = self.platform.target.drop_service
        assert drop is not None, "services cannot be deleted"
        with contextlib.suppress(UnknownServiceError):
            drop(self.name)


Make = Callable[[Any], CheckedService]


def client(platform: Platform, server: McpServer) -> McpClient:
    """Return a client of a server."""
    return platform.mcp(server.url, headers=server.headers)


@for_caller.register
def _client_of_caller(client: McpClient, _number: int, stack: ExitStack) -> McpClient:
    return stack.enter_context(client.another())


def ask(
    platform: Platform, server: McpServer, session: McpSession | None, message: Message
) -> list[dict[str, Any]]:
    """Send a message; return the replies that are results or errors."""
    return answers(platform.send(mcp.request(server, session, message)))


def answers(response: httpx.Response) -> list[dict[str, Any]]:
    """Return the messages in an answer that reply to a request, an empty list if there are none."""
    if not response.content.strip():
        return []
    return [it for it in mcp.messages(response) if "result" in it or "error" in it]


def open_session(platform: Platform, server: McpServer) -> McpSession:
    """Open a session, as clients do."""
    session = wire.send(platform, mcp.initialize(server))
    platform.send(mcp.initialized(server, session).request)
    return session


def text_of(result: McpResult) -> str:
    """Return the text of a result. Fail if the result is an error."""
    assert not result.is_error, f"a tool returns an error: {short(result.text)}"
    return result.text


def structured_of(result: McpResult) -> Mapping[str, Any]:
    """Return the structured content of a result. Fail if it has none, or is an error."""
    assert not result.is_error, f"a tool returns an error: {short(result.text)}"
    assert isinstance(result.structured, dict), (
        f"no structured object: {json.dumps(result.content)}"
    )
    return result.structured


def is_refused(client: McpClient, tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call returned an error, from the tool or from the protocol."""
    try:
        return client.call(tool, **arguments).is_error
    except RefusedError:
        return True


def validator(schema: Mapping[str, Any]) -> Any:
    """Return a validator for a JSON Schema. Raise its SchemaError if it is none."""
    try:
        from jsonschema import validators  # optional: jsonschema
    except ImportError:
        not_observable("needs a validator: pip install jsonschema")
    kind = validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@pytest.fixture
def mcp_client(platform: Platform) -> Iterator[McpClient]:
    """A client of the platform's MCP application."""
    with platform.mcp() as client:
        yield client


@pytest.fixture
def make_service(platform: Platform, leftovers: Leftovers) -> Make:
    """A function that creates a service in front of a backend."""
    make_service = platform.target.make_service
    if make_service is None:
        pytest.skip(NOT_MADE)

    def make(backend: Any) -> CheckedService:
        name = f"Doublecheck-{uuid.uuid4().hex}"
        service = CheckedService(platform, name, make_service(name, backend))
        leftovers.add(service.delete)
        return service

    return make


@pytest.fixture
def service(platform: Platform, make_service: Make) -> CheckedService:
    """A service in front of the platform's own MCP application."""
    return make_service(f"{platform.target.mcp}{mcp.PATH}")


@pytest.fixture
def mcp_server(platform: Platform, request: pytest.FixtureRequest) -> McpServer:
    """The MCP server under test: a service if one can be created, otherwise the application."""
    if platform.target.make_service is None:
        return McpServer.at(platform.target, mcp.PATH, None, None)
    service: CheckedService = request.getfixturevalue("service")
    return service.server
