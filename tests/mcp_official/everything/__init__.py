"""An MCP server that uses every feature of the protocol, for the conformance suite and clients.

What it offers is named by the scenarios of the suite; it is written against the SDK's low-level
Server, so that what arrives on the wire is what stands here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListToolsResult,
    PaginatedRequestParams,
    SetLevelRequestParams,
)

from tests.mcp_official.everything import asking_tools, offers, plain_tools, round_tools
from tests.mcp_official.everything.offers import PROMPTS
from tests.mcp_official.everything.state import State
from tests.mcp_official.everything.tables import Context, Tools

TOOLS = Tools()
for _module in (plain_tools, asking_tools, round_tools):
    TOOLS.update(_module.TOOLS)

_NAME = "everything"
_COMPLETIONS = ["paris", "park", "party"]


def server() -> Server[State]:
    """Return a new server with fresh state."""
    state = State()
    server = Server(
        _NAME,
        version="1.0.0",
        lifespan=_lifespan(state),
        get_tool_input_schema=TOOLS.schema,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_list_resources=offers.list_resources,
        on_list_resource_templates=offers.list_templates,
        on_read_resource=offers.read,
        on_subscribe_resource=offers.subscribe,
        on_unsubscribe_resource=offers.unsubscribe,
        on_subscriptions_listen=ListenHandler(state.bus),
        on_completion=_complete,
    )
    # an argument of the constructor would warn that the newest revision has it no more
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=_NAME)
    )
    return server


def _lifespan(state: State) -> Any:
    @asynccontextmanager
    async def give(_: Server[State]) -> AsyncIterator[State]:
        yield state

    return give


async def _list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS.listed())


async def _call_tool(
    ctx: Context, params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    return await TOOLS.run(params.name)(ctx, params)


async def _list_prompts(ctx: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
    return ListPromptsResult(prompts=PROMPTS.listed())


async def _get_prompt(
    ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    return await PROMPTS.run(params.name)(ctx, params)


async def _complete(ctx: Context, params: CompleteRequestParams) -> CompleteResult:
    values = [value for value in _COMPLETIONS if value.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=values, total=len(values), has_more=False))


async def _set_level(ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()
