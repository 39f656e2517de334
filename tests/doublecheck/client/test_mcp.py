"""The MCP client of the harness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp.server import Server
from mcp.types import ListToolsResult

from agentdouble import Emulator, MCPApp
from doublecheck import Platform, Secret, Target
from doublecheck.errors import AnswerError, RefusedError, UnreachableError
from doublecheck.results import McpResult, McpTool
from doublecheck.wire import mcp as wire

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """A double with one tool and an API key."""
    app = MCPApp("one")

    @app.tool
    def add(a: int, b: int = 1) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    with Emulator(app, api_key="the-key") as double:
        yield Target.of(double)


RESULT = McpResult(
    is_error=False,
    structured={"sum": 3},
    content=({"type": "text", "text": '{\n  "sum": 3\n}'},),
)


def test_tools_are_listed_and_called(target: Target) -> None:
    with Platform(target) as platform, platform.mcp() as mcp:
        (tool,) = mcp.tools()
        result = mcp.call("add", a=2)

    assert isinstance(tool, McpTool)
    assert ("add", "Add two numbers.", ["a"], "object") == (
        tool.name,
        tool.description,
        tool.input_schema["required"],
        (tool.output_schema or {})["type"],
    )
    assert (RESULT, '{\n  "sum": 3\n}') == (result, result.text)


def test_all_pages_of_a_list_are_read() -> None:
    operation = {"description": "x" * 200_000, "responses": {"200": {"description": "fine"}}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "large", "version": "1"},
        "servers": [{"url": "http://api.example"}],
        "paths": {f"/{n}": {"get": {**operation, "operationId": f"op{n}"}} for n in range(5)},
    }
    with Emulator() as double:
        double.mcp.create("large", document, key="k")
        with (
            Platform(Target.of(double)) as platform,
            platform.mcp("/mcp/large", api_key="k") as mcp,
        ):
            first = mcp.ask("tools/list")
            tools = [tool.name for tool in mcp.tools()]

    assert 2 == len(first["tools"])
    assert [f"op{n}" for n in range(5)] == tools


def test_a_repeated_cursor_is_an_error() -> None:
    """Otherwise the client would never stop."""

    async def again(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[], next_cursor="again")

    with Emulator(pool_size=0) as double:
        double.mcp.create("endless", Server("endless", on_list_tools=again), key="k")
        with (
            Platform(Target.of(double)) as platform,
            platform.mcp("/mcp/endless", api_key="k") as mcp,
            pytest.raises(AnswerError, match="The list repeats a cursor: 'again'"),
        ):
            mcp.tools()


def test_an_explicit_url_uses_its_own_key(target: Target) -> None:
    """The target's key is sent only to the target."""
    with Platform(target) as platform:
        with pytest.raises(RefusedError) as caught:
            platform.mcp(f"{target.url}/mcp").tools()
        assert 401 == caught.value.status
        assert RESULT == platform.mcp(f"{target.url}/mcp", api_key="the-key").call("add", a=2)


def test_any_method_can_be_called(target: Target) -> None:
    """A refusal has the code of the protocol."""
    with Platform(target) as platform, platform.mcp() as mcp:
        assert {} == mcp.ask("ping")
        with pytest.raises(RefusedError) as caught:
            mcp.ask("nobody/knows")

    assert "-32601" == caught.value.code


def test_a_session_ends_with_its_client(target: Target) -> None:
    """A closed client opens a new one on its next call."""
    with Platform(target) as platform:
        mcp = platform.mcp()
        mcp.close()
        assert RESULT == mcp.call("add", a=2)
        before = mcp._session
        mcp.close()
        assert RESULT == mcp.call("add", a=2)

    assert before != mcp._session


def test_an_address_without_mcp_is_an_error(target: Target) -> None:
    with Platform(target) as platform:
        with pytest.raises(AnswerError):
            platform.mcp("/invoke").tools()
        with pytest.raises(UnreachableError):
            platform.mcp("http://127.0.0.1:1/mcp").tools()


def test_keys_are_not_in_reprs(target: Target) -> None:
    with Platform(target) as platform:
        mcp = platform.mcp(api_key=Secret("hidden").reveal())

    assert f"<McpClient of {target.url}/mcp>" == repr(mcp)
    assert "hidden" not in repr(mcp._server)


@pytest.mark.parametrize(
    "page", [{}, {"tools": [{"name": "add"}]}, {"tools": ["add"]}, {"tools": None}]
)
def test_malformed_tools_are_reported(page: dict[str, Any]) -> None:
    with pytest.raises(AnswerError, match="tools/list did not return tools"):
        wire.tools_of(page)
