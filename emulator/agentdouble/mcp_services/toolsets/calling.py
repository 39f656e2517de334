"""A tool call that is passed on to the tool's service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp.client import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    TextContent,
)
from mcp_types import HEADER_MISMATCH
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from agentdouble.errors import ServiceUnansweredError
from agentdouble.mcp_services import headers
from agentdouble.mcp_services.toolsets.asking import AskingBack, Context, Headers, Member, ask
from agentdouble.mcp_services.toolsets.listing import (
    every_page,
    is_shortened,
    list_one,
    merged,
    split,
)

Answer = CallToolResult | InputRequiredResult
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


async def call(
    members: Sequence[Member], context: Context, params: CallToolRequestParams
) -> Answer:
    """Call the tool with this merged name and return its result unchanged.

    A tool that cannot be called is a tool error. Raises MCPError if the service answers with one.
    """
    sent = along(context)
    try:
        found = await _find(members, params.name, sent)
        if found is None:
            return failed(f"There is no tool {params.name!r}.")
        member, tool = found
        # the rest of _meta is between the caller and the toolset
        own = params.model_copy(update={"name": tool, "meta": None})
        return await _passed_on(member, context, own, sent)
    except ServiceUnansweredError as error:
        return failed(str(error))


def along(context: Context) -> Headers:
    """Return the caller's headers that a service may see, too."""
    return [] if context.request is None else headers.along(context.request.headers.raw)


def failed(message: str) -> CallToolResult:
    """Return a tool error."""
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


async def call_one(member: Member, tool: str, arguments: dict[str, Any]) -> Answer:
    """Call a tool of a service for a caller that answers no requests of it.

    Raises ServiceUnansweredError, and MCPError if the service answers with one.
    """
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
    return await ask(member, lambda session: _request(session, request), [])


async def _request(
    session: ClientSession, request: CallToolRequest, report: ProgressFnT | None = None
) -> Answer:
    try:
        return await session.send_request(request, _ANSWER, progress_callback=report)
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
    await every_page(session)  # the list says which arguments are headers, too
    return await session.send_request(request, _ANSWER, progress_callback=report)


async def _find(members: Sequence[Member], name: str, sent: Headers) -> tuple[Member, str] | None:
    by_name = {member.name: member for member in members}
    parts = split(name, by_name)
    if parts is None:
        return None
    member, tool = by_name[parts[0]], parts[1]
    if is_shortened(name):
        listed = (one.name for one in await list_one(member, sent))
        tool = next((one for one in listed if merged(member.name, one) == name), tool)
    return member, tool


async def _passed_on(
    member: Member, context: Context, params: CallToolRequestParams, sent: Headers
) -> Answer:
    request = CallToolRequest(params=params)
    begun = False

    async def question(session: ClientSession) -> Answer:
        nonlocal begun
        begun = True
        return await _request(session, request, context.session.report_progress)

    back = AskingBack(context).callbacks()
    if back and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        # a server sends requests as its era does, so use the caller's era
        try:
            return await ask(member, question, sent, "legacy", **back)
        except ServiceUnansweredError:
            if begun:  # a tool must not run twice
                raise
    return await ask(member, question, sent, **back)
