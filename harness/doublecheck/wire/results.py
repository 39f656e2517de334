"""Read the result in an exchange again: of code, a command, a tool, an agent or an application."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from agentdouble.core import invoke_tool
from agentdouble.core.event_stream import data_of
from doublecheck.errors import DoubleCheckError
from doublecheck.values.agents import AgentEvents, StreamEvent
from doublecheck.values.executions import CanFail
from doublecheck.wire import a2a, api_server, calls, control_plane, data_plane, mcp
from doublecheck.wire.event_stream import is_stream
from doublecheck.wire.exchanges import Exchange

Read = Callable[[httpx.Response], CanFail | None]

_UNREADABLE = (
    *(DoubleCheckError, LookupError, TypeError, ValueError, AttributeError),
    *(RecursionError, httpx.HTTPError),
)


def result_of(exchange: Exchange) -> CanFail | None:
    """Return the result in the answer of an exchange, or None."""
    read = _reader(exchange)
    if read is None or exchange.status is None:
        return None
    try:
        return read(response_of(exchange))
    except _UNREADABLE:
        return None


def response_of(exchange: Exchange) -> httpx.Response:
    """Return the answer of an exchange as an httpx response."""
    request = httpx.Request(exchange.request.method, exchange.request.url)
    named = {name.lower(): value for name, value in exchange.headers.items()}
    kind = {"content-type": named.get("content-type", "")}
    return httpx.Response(
        exchange.status or 0, headers=kind, content=exchange.body, request=request
    )


def body_of(exchange: Exchange) -> Mapping[str, Any]:
    """Return the JSON object in the body of a request, or an empty one."""
    document = calls.json_or_none(exchange.request.content)
    return document if isinstance(document, dict) else {}


def code_of(exchange: Exchange) -> tuple[str, str] | None:
    """Return the code or command of a request, and its language."""
    body = body_of(exchange)
    if body.get("OperationType") not in (invoke_tool.RUN_CODE, invoke_tool.EXEC_BASH):
        return None
    try:
        payload = json.loads(body["OperationPayload"])
        if body["OperationType"] == invoke_tool.EXEC_BASH:
            return str(payload["command"]), "bash"
        return str(payload["code"]), str(payload.get("kernel_name", "python3"))
    except _UNREADABLE:
        return None


def _reader(exchange: Exchange) -> Read | None:
    parts = urlsplit(exchange.request.url)
    if parse_qs(parts.query).get("Action") == [invoke_tool.ACTION]:
        commanded = body_of(exchange).get("OperationType") == invoke_tool.EXEC_BASH
        return data_plane.read_command if commanded else control_plane.read_result
    method = body_of(exchange).get("method")
    if method == "tools/call":
        return mcp.read_tool_result
    if method in a2a.SENDING:
        return a2a.read_answer
    return {"/invoke": _failed_stream, "/run": api_server.read_events, "/run_sse": _run}.get(
        parts.path
    )


def _failed_stream(response: httpx.Response) -> StreamEvent | None:
    events = (StreamEvent(data) for data in _events(response))
    return next((event for event in events if event.error is not None), None)


def _run(response: httpx.Response) -> AgentEvents:
    return AgentEvents(api_server.read_event(data) for data in _events(response))


def _events(response: httpx.Response) -> Iterator[str]:
    if is_stream(response):
        yield from data_of(response.content)
