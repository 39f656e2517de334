"""Calls of a service's tools by the MCP SDK's own client, for the pages of the double."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx2
from mcp.client import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    PaginatedRequestParams,
    Tool,
)
from mcp_types import HEADER_MISMATCH
from pydantic import TypeAdapter

from agentdouble.errors import ServiceUnansweredError

T = TypeVar("T")

LIST_TIMEOUT_S = 10.0
PAGES = 1000  # a list that never ends is cut off

_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
_log = logging.getLogger(__name__)


async def list_tools(record: Mapping[str, Any]) -> list[Tool]:
    """Return the tools of the service of an access record.

    Raises ServiceUnansweredError, and MCPError if the service answers with one.
    """
    name = next(iter(record["mcpServers"]))
    try:
        return await asyncio.wait_for(_ask(record, _every_page), LIST_TIMEOUT_S)
    except asyncio.TimeoutError:
        raise ServiceUnansweredError(name, f"no answer in {LIST_TIMEOUT_S:g} s") from None


async def call_tool(
    record: Mapping[str, Any], tool: str, arguments: dict[str, Any]
) -> CallToolResult | InputRequiredResult:
    """Call a tool of the service of an access record; raise as ``list_tools``."""
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))

    async def question(session: ClientSession) -> CallToolResult | InputRequiredResult:
        try:
            return await session.send_request(request, _RESULT)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
        await _every_page(session)  # the list says which arguments are headers, too
        return await session.send_request(request, _RESULT)

    return await _ask(record, question)


async def _ask(record: Mapping[str, Any], question: Callable[[ClientSession], Awaitable[T]]) -> T:
    ((name, server),) = record["mcpServers"].items()
    refusals: list[str] = []

    async def note(response: httpx2.Response) -> None:
        if response.status_code >= 400 and response.request.method == "POST":
            refusals.extend(_refusal(response.status_code, await response.aread()))

    # the address is the double's own, whose certificate may be of its own making
    http = httpx2.AsyncClient(
        headers=server["headers"],
        timeout=None,
        verify=False,
        trust_env=False,
        event_hooks={"response": [note]},
    )
    answer: MCPError | None = None
    try:
        async with http, Client(_transport(server["httpUrl"], http), cache=None) as client:
            try:
                return await question(client.session)
            except MCPError as error:
                answer = error  # not raised here, where it would become an exception group
    except Exception as error:
        _log.info("The MCP service %s: %r", name, error)
        reason = _reason(error) if answer is None else str(answer)
        raise ServiceUnansweredError(name, (refusals or [reason])[-1]) from None
    if refusals:
        raise ServiceUnansweredError(name, refusals[-1])
    assert answer is not None
    raise answer


def _transport(url: str, http: httpx2.AsyncClient) -> Any:
    return streamable_http_client(url, http_client=http, max_sse_event_size=None)


async def _every_page(session: ClientSession) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _refusal(status: int, body: bytes) -> list[str]:
    """Return why a request was refused, unless the server itself answered it."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        message = json.loads(body)
        return [] if message.get("id") is not None else [str(message["error"]["message"])]
    return [f"it answered {status}"]


def _reason(error: BaseException) -> str:
    """Return the reason inside the exception groups that the client's tasks raise."""
    while inner := getattr(error, "exceptions", None):
        error = inner[0]
    return str(error) or type(error).__name__
