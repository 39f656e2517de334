"""The MCP server of a toolset: all tools of its services, or two tools that find and call them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
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

from agentdouble.mcp_hosting.pages import ToolPages
from agentdouble.mcp_services.toolsets.asking import Context, Headers, Member
from agentdouble.mcp_services.toolsets.calling import Answer, along, call, failed
from agentdouble.mcp_services.toolsets.kept_lists import KeptLists, MergedList
from agentdouble.mcp_services.toolsets.listing import Listed, list_all
from agentdouble.mcp_services.toolsets.toolsets import Exposes
from agentdouble.threads import run_in_thread

Members = Callable[[], Sequence[Member]]
Found = dict[str, Any] | None
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def make_server(name: str, exposes: Exposes, members: Members) -> Server[Any]:
    """Return a low-level server for the services that ``members`` returns at each request."""
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
        self._kept = KeptLists()

    async def list(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        members, sent = self._members(), along(context)
        caller = tuple(member.name for member in members), tuple(sent)
        merged = self._kept.find(caller, params) or await self._merged(members, sent)
        self._kept.keep(caller, merged)
        return merged.page(params)

    async def _merged(self, members: Sequence[Member], sent: Headers) -> MergedList:
        listing = await list_all(members, sent)
        pages = await run_in_thread(lambda: ToolPages([one.shown() for one in listing.tools]))
        return MergedList(pages, listing.missing)

    async def call(self, context: Context, params: CallToolRequestParams) -> Answer:
        return await call(self._members(), context, params)


class Search(BaseModel):
    """The arguments of ``search``."""

    model_config = ConfigDict(strict=True, extra="forbid")

    query: str = Field(
        max_length=1000, description="What the tool is to do, in words; empty finds all."
    )
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
                for one in _best_of(listing.tools, search.query, search.limit)
            ],
            "missing": dict(listing.missing),
        }
        text = TextContent(text=to_json(found, indent=2).decode())
        return CallToolResult(content=[text], structured_content=found)


def _best_of(tools: Iterable[Listed], query: str, limit: int) -> list[Listed]:
    """Return the tools that match most of the query's words, the best first.

    A query without words finds all. Words match beginnings: ``repo`` finds ``repository``.
    """
    asked = _words(query)
    ranked = [(_score(one, asked), index, one) for index, one in enumerate(tools)]
    fitting = [entry for entry in ranked if entry[0] > 0 or not asked]
    fitting.sort(key=lambda entry: (-entry[0], entry[1]))
    return [one for _, _, one in fitting[:limit]]


def _score(listed: Listed, asked: set[str]) -> int:
    name = _words(listed.name)
    rest = _words(" ".join(filter(None, (listed.tool.title, listed.tool.description))))
    properties = listed.tool.input_schema.get("properties")
    arguments = _words(" ".join(properties)) if isinstance(properties, dict) else set()
    weights = ((name, 4), (rest, 2), (arguments, 1))
    return sum(
        max((weight for words, weight in weights if _has(words, word)), default=0) for word in asked
    )


def _has(words: set[str], asked: str) -> bool:
    """Return whether a word, its beginning, or its stem (of four or more letters) is there."""
    stems = {word for word in words if len(word) > 3}
    return any(word.startswith(asked) for word in words) or asked.startswith(tuple(stems))


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(_HUMP.sub(" ", text))}
