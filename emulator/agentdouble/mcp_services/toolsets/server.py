"""The MCP server of a toolset: all tools of its services, or the pair that finds and calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.server import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from agentdouble.mcp_services.toolsets import searching
from agentdouble.mcp_services.toolsets.asking import Member
from agentdouble.mcp_services.toolsets.asking_back import Context
from agentdouble.mcp_services.toolsets.calling import Answer, along, call, failed
from agentdouble.mcp_services.toolsets.listing import list_all
from agentdouble.mcp_services.toolsets.toolset import Exposes

MISSING = "agentdouble/missing"
"""In the ``_meta`` of a list of tools: the services that are not in it, each with the reason."""

Members = Callable[[], Sequence[Member]]
Found = dict[str, Any] | None


def make_server(name: str, exposes: Exposes, members: Members) -> Server[Any]:
    """Return a low-level server over the services that ``members`` returns at the time."""
    tools = _All(members) if exposes == "all" else _Pair(members)
    return Server(
        name,
        get_tool_input_schema=lambda _name: None,  # the service that has the tool knows it
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )


class _All:
    def __init__(self, members: Members) -> None:
        self._members = members

    async def list(self, context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        listing = await list_all(self._members(), along(context))
        meta = {MISSING: dict(listing.missing)} if listing.missing else None
        return ListToolsResult(tools=[one.shown() for one in listing.tools], _meta=meta)

    async def call(self, context: Context, params: CallToolRequestParams) -> Answer:
        return await call(self._members(), context, params)


class Search(BaseModel):
    """The arguments of ``search``."""

    model_config = ConfigDict(strict=True, extra="forbid")

    query: str = Field(description="What the tool is to do, in words; empty finds all.")
    limit: int = Field(10, ge=1, le=100, description="The largest number of tools to return.")


class Use(BaseModel):
    """The arguments of ``use``."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: str = Field(description="The name of a tool, as search has given it.")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="Its arguments, as its input_schema says."
    )


PAIR: dict[str, tuple[type[BaseModel], str]] = {
    "search": (Search, "Find the tools that fit a question, with their schemas, best first."),
    "use": (Use, "Call a tool that search has found."),
}


class _Pair:
    def __init__(self, members: Members) -> None:
        self._members = members

    async def list(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(name=name, description=text, input_schema=model.model_json_schema())
                for name, (model, text) in PAIR.items()
            ]
        )

    async def call(self, context: Context, params: CallToolRequestParams) -> Answer:
        try:
            if params.name == "search":
                return await self._search(context, Search(**params.arguments or {}))
            if params.name == "use":
                use = Use(**params.arguments or {})
                meant = {"name": use.name, "arguments": use.arguments}
                return await call(self._members(), context, params.model_copy(update=meant))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            return failed(f"The argument {field!r} of {params.name} is wrong: {first['msg']}.")
        return failed(f"There is no tool {params.name!r}: there are search and use.")

    async def _search(self, context: Context, search: Search) -> CallToolResult:
        listing = await list_all(self._members(), along(context))
        found: dict[str, Any] = {
            "tools": [
                one.shown().model_dump(mode="json", by_alias=True, exclude_none=True)
                for one in searching.best(listing.tools, search.query, search.limit)
            ],
            "missing": dict(listing.missing),
        }
        text = TextContent(text=to_json(found, indent=2).decode())
        return CallToolResult(content=[text], structured_content=found)
