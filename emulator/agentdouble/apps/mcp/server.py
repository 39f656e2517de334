"""A low-level server of the MCP SDK with the tools of an MCPApp."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp.types import Tool as ToolOnWire

from agentdouble import ledger
from agentdouble.apps.contract import from_application, text_of
from agentdouble.apps.mcp.hosting import Runner, current_runner
from agentdouble.apps.mcp.invocations import invoked
from agentdouble.apps.mcp.rounds import check_round
from agentdouble.apps.mcp.tool_answers import Answer, answer_of, failure
from agentdouble.apps.mcp.tool_arguments import UNKNOWN_ARGUMENTS
from agentdouble.apps.mcp.tools import Tool
from agentdouble.errors import ToolArgumentsError
from agentdouble.failing import beneath
from agentdouble.mcp_hosting.pages import ToolPages

if TYPE_CHECKING:
    from agentdouble.apps.mcp.context import Asked
    from agentdouble.apps.mcp.requests import Requests

Context = ServerRequestContext[Any, Any]

_log = logging.getLogger(__name__)


def make_server(
    name: str,
    tools: Mapping[str, Tool],
    alone: Runner,
    requests: Callable[[], Requests],
    instructions: str | None,
    version: str,
) -> Any:
    """Return a server that calls the tools; tools may be added later.

    ``alone`` runs them where no place hosts the server, ``requests`` makes the contexts for those
    that ask for one.
    """
    server = _Tools(name, tools, alone, requests)
    return Server(
        name,
        version=version,
        instructions=instructions,
        get_tool_input_schema=server.schema_of,
        on_list_tools=server.list,
        on_call_tool=server.call,
    )


class _Tools:
    def __init__(
        self,
        name: str,
        tools: Mapping[str, Tool],
        alone: Runner,
        requests: Callable[[], Requests],
    ) -> None:
        self._name = name
        self._tools = tools
        self._alone = alone
        self._requests = requests
        self._pages: tuple[object, ToolPages] | None = None

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.get(name)
        return None if tool is None else tool.arguments.schema

    async def list(self, _: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        state = (len(self._tools), ledger.choose(UNKNOWN_ARGUMENTS))  # no tool is ever replaced
        if self._pages is None or self._pages[0] != state:
            self._pages = state, ToolPages([_on_wire(tool) for tool in self._tools.values()])
        return self._pages[1].page(params)

    async def call(self, request: Context, params: CallToolRequestParams) -> Answer:
        tool = self._tools.get(params.name)
        if tool is None:
            has = ", ".join(self._tools) or "none"
            raise MCPError(
                INVALID_PARAMS, f"Unknown tool: {params.name}. {self._name} has these: {has}."
            )
        try:
            return check_round(request, answer_of(tool, await self._value(tool, request, params)))
        except MCPError:  # an error of the protocol that the tool raised
            raise
        except ToolArgumentsError as error:
            return failure(str(error))
        except Exception as error:
            own = beneath(error)
            if own is not None:
                raise MCPError(INTERNAL_ERROR, own) from error
            _log.error(
                "The tool %s of %s raised.", tool.name, self._name, exc_info=from_application(error)
            )
            return failure(text_of(error))

    async def _value(self, tool: Tool, request: Context, params: CallToolRequestParams) -> Any:
        values = tool.arguments.read(params.arguments or {})
        if tool.asks:
            with self._requests().asked(request, params) as asked:
                return await _ask(tool, values, asked)
        with invoked(self._name, request):
            runner = current_runner(self._alone)
            return await runner.run(tool.function, tool.arguments.bind(values))


async def _ask(tool: Tool, values: dict[str, Any], asked: Asked) -> Any:
    """Call a tool that needs the context, or return what the client has to answer first."""
    if tool.dependencies is not None:
        resolve = tool.dependencies.resolve
        found = await asked.run(resolve, signature(resolve).bind(values, asked.context))
        if isinstance(found, InputRequiredResult):
            return found
        values.update(found)
    if tool.context is not None:
        values[tool.context] = asked.context
    return await asked.run(tool.function, tool.arguments.bind(values))


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
