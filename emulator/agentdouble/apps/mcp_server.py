"""A low-level server of the MCP SDK with the tools of an MCPApp."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp.types import Tool as ToolOnWire

from agentdouble import ledger
from agentdouble.apps.contract import from_application
from agentdouble.apps.tool_arguments import UNKNOWN_ARGUMENTS
from agentdouble.apps.tools import Tool
from agentdouble.code_tool import DEFAULT_SESSION, DEFAULT_USER, Invocation, invoked_by
from agentdouble.errors import ToolArgumentsError
from agentdouble.failing import beneath

Run = Callable[[Tool, Mapping[str, Any]], Awaitable[Any]]
Context = ServerRequestContext[Any, Any]

_log = logging.getLogger(__name__)


def make_server(name: str, tools: Mapping[str, Tool], run: Run, instructions: str | None) -> Any:
    """Return a server that calls each tool with ``run``; tools may be added later."""
    server = _Tools(name, tools, run)
    return Server(
        name,
        instructions=instructions,
        get_tool_input_schema=server.schema_of,
        on_list_tools=server.list,
        on_call_tool=server.call,
    )


class _Tools:
    def __init__(self, name: str, tools: Mapping[str, Tool], run: Run) -> None:
        self._name = name
        self._tools = tools
        self._run = run

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.get(name)
        return None if tool is None else tool.arguments.schema

    async def list(self, _context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_on_wire(tool) for tool in self._tools.values()])

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            has = ", ".join(self._tools) or "none"
            raise MCPError(
                INVALID_PARAMS, f"Unknown tool: {params.name}. {self._name} has these: {has}."
            )
        try:
            with invoked_by(self._invocation(context)):
                value = await self._run(tool, params.arguments or {})
            return _result(tool, value)
        except MCPError:  # an error of the protocol that the tool raised
            raise
        except ToolArgumentsError as error:
            return _failure(str(error))
        except Exception as error:
            own = beneath(error)
            if own is not None:
                raise MCPError(INTERNAL_ERROR, own) from error
            _log.error(
                "The tool %s of %s raised.", tool.name, self._name, exc_info=from_application(error)
            )
            return _failure(_text(error))

    def _invocation(self, context: Context) -> Invocation:
        """Return the invocation that the headers describe, with defaults for missing headers."""
        headers = {} if context.request is None else context.request.headers
        return Invocation(
            user_id=headers.get("user_id") or DEFAULT_USER,
            session_id=headers.get("session_id") or DEFAULT_SESSION,
            agent=self._name,
        )


def _on_wire(tool: Tool) -> ToolOnWire:
    schema = tool.arguments.schema
    if ledger.choose(UNKNOWN_ARGUMENTS) == "refused":
        schema = {**schema, "additionalProperties": False}
    return ToolOnWire(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        output_schema=tool.results.schema,
    )


def _result(tool: Tool, value: Any) -> CallToolResult:
    if isinstance(value, CallToolResult):
        return value
    blocks = value if isinstance(value, list | tuple) else [value]
    if blocks and all(isinstance(block, ContentBlock) for block in blocks):
        return CallToolResult(content=list(blocks))
    result = tool.results.result_of(value)
    content: list[ContentBlock] = [TextContent(text=text) for text in result.texts]
    return CallToolResult(content=content, structured_content=result.structured)


def _failure(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _text(error: Exception) -> str:
    """Return the text of an exception, with its type if the text is empty or only a key."""
    text = str(error)
    if text and not isinstance(error, KeyError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
