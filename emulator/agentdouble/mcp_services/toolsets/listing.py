"""The tools of several services as one list, with their names: ``<service>__<tool>``.

A service that is dead, or that does not answer within 10 s, is missing from the list, and the
reason is in ``_meta``. A name depends only on its two parts, so it does not change when other
services are added or removed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.types import PaginatedRequestParams, Tool

from agentdouble.errors import ServiceUnansweredError
from agentdouble.mcp_services.toolsets.asking import Headers, Member, ask

SEPARATOR = "__"
LONGEST = 128  # characters of a tool's name, by the protocol
_CLEAR = 64  # characters of a service's name, so that a shortened name has all of it
_DIGEST = 16
LIST_TIMEOUT_S = 10.0
PAGES = 1000  # a list that never ends is cut off


def merged(service: str, tool: str) -> str:
    """Return the name of a service's tool in a merged list.

    The service's name is replaced by a digest if it is long, or if it would hide where the tool's
    name begins. A name that would be too long ends in a digest.
    """
    name = _prefix(service) + tool
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - _DIGEST - 1]}-{_digest(name)}"


def split(name: str, services: Iterable[str]) -> tuple[str, str] | None:
    """Return the service and the tool of a merged name, or None if it has none of the services.

    For a name that ends in a digest, compare with ``merged``: see ``is_shortened``.
    """
    found = next((one for one in services if name.startswith(_prefix(one))), None)
    return None if found is None else (found, name[len(_prefix(found)) :])


def is_shortened(name: str) -> bool:
    """Return whether a name may end in a digest, so that it must be looked up in a list."""
    return len(name) == LONGEST


def _prefix(service: str) -> str:
    clear = SEPARATOR not in service and not service.endswith("_") and len(service) <= _CLEAR
    return (service if clear else _digest(service)) + SEPARATOR


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


@dataclass(frozen=True)
class Listed:
    """A tool with its own name and its name in the toolset."""

    member: Member
    tool: Tool

    @property
    def name(self) -> str:
        """Its name in the merged list."""
        return merged(self.member.name, self.tool.name)

    def shown(self) -> Tool:
        """Return the tool as the toolset lists it."""
        return self.tool.model_copy(update={"name": self.name, "execution": None})


@dataclass(frozen=True)
class Listing:
    """The tools of services; ``missing`` has the services that gave none, with the reasons."""

    tools: tuple[Listed, ...]
    missing: Mapping[str, str]


async def list_all(members: Sequence[Member], headers: Headers) -> Listing:
    """Request the tools of all services at once."""
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
    asked = ask(member, every_page, headers)
    try:
        return await asyncio.wait_for(asked, LIST_TIMEOUT_S)
    except asyncio.TimeoutError:
        reason = f"it does not say in {LIST_TIMEOUT_S:g} s which tools it has"
        raise ServiceUnansweredError(member.name, reason) from None


async def _tools(member: Member, headers: Headers) -> list[Tool] | str:
    """Return the tools of a service, or the reason why there are none."""
    try:
        return await list_one(member, headers)
    except (ServiceUnansweredError, MCPError) as error:
        return str(error)


async def every_page(session: ClientSession) -> list[Tool]:
    """Return the tools of all pages of a service's list."""
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
