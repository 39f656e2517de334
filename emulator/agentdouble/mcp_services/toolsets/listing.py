"""The tools of several services as one list, in which one that is dead is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.types import PaginatedRequestParams, Tool

from agentdouble.errors import ServiceUnansweredError
from agentdouble.mcp_services.toolsets.asking import Headers, Member, ask
from agentdouble.mcp_services.toolsets.names import merged

LIST_TIMEOUT_S = 10.0
PAGES = 1000  # a list that never ends is cut off


@dataclass(frozen=True)
class Listed:
    """A tool with its own name, and what it is called behind the toolset's address."""

    member: Member
    tool: Tool

    @property
    def name(self) -> str:
        """What it is called among the tools of others."""
        return merged(self.member.name, self.tool.name)

    def shown(self) -> Tool:
        """Return it as the toolset lists it."""
        return self.tool.model_copy(update={"name": self.name, "execution": None})


@dataclass(frozen=True)
class Listing:
    """What the services have; ``missing`` are those that did not say, each with the reason."""

    tools: tuple[Listed, ...]
    missing: Mapping[str, str]


async def list_all(members: Sequence[Member], headers: Headers) -> Listing:
    """Ask all services at once for their tools."""
    answers = await asyncio.gather(*(_tools(member, headers) for member in members))
    found = [
        Listed(member, tool)
        for member, answer in zip(members, answers, strict=True)
        if not isinstance(answer, str)
        for tool in answer
    ]
    missing = {
        member.name: answer
        for member, answer in zip(members, answers, strict=True)
        if isinstance(answer, str)
    }
    return Listing(tuple(found), missing)


async def list_one(member: Member, headers: Headers) -> list[Tool]:
    """Return the tools of a service; raise ServiceUnansweredError or MCPError."""
    asked = ask(member, _every_page, headers)
    try:
        return await asyncio.wait_for(asked, LIST_TIMEOUT_S)
    except asyncio.TimeoutError:
        reason = f"it does not say in {LIST_TIMEOUT_S:g} s which tools it has"
        raise ServiceUnansweredError(member.name, reason) from None


async def _tools(member: Member, headers: Headers) -> list[Tool] | str:
    """Return the tools of a service, or why it has none."""
    try:
        return await list_one(member, headers)
    except (ServiceUnansweredError, MCPError) as error:
        return str(error)


async def _every_page(session: ClientSession) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        page = await session.list_tools(params=params)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools
