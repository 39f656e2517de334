"""A small MCP client over streamable HTTP: sessions, tools and calls (sections 2.5 and 4.3)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentdouble.core.event_stream import MEDIA_TYPE
from doublecheck.errors import AnswerError
from doublecheck.target.target import Target
from doublecheck.values.agents import McpResult, McpTool
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.event_stream import is_stream, read_events

if TYPE_CHECKING:
    import httpx

PATH = "/mcp"
VERSION = "2025-11-25"
CLIENT = {"name": "doublecheck", "version": "1"}
MOST_PAGES = 1000  # of a list; a longer one counts as endless

_ids = itertools.count(1)


@dataclass(frozen=True)
class McpServer:
    """An MCP server: its address, and the headers of every request to it."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def at(
        cls, target: Target, address: str, api_key: str | None, headers: Mapping[str, str] | None
    ) -> McpServer:
        """Return the server at a path of a target, or at any URL.

        For a path, the target's API key is sent, unless another key is given.
        """
        is_path = address.startswith("/")
        key = target.key_of("mcp")
        if api_key is None and is_path and key is not None:
            api_key = key.reveal()
        authorization = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        url = target.mcp + address if is_path else address
        return cls(url, {**authorization, **calls.mapping_of_headers(headers)})


@dataclass(frozen=True)
class McpSession:
    """The agreement with a server: its version, and the id of the session if it has one."""

    version: str
    id: str | None
    document: Mapping[str, Any]


def initialize(server: McpServer) -> Call[McpSession]:
    """Return the call that opens a session."""
    params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": CLIENT}
    return Call(request(server, None, _message("initialize", params)), _read_session)


def initialized(server: McpServer, session: McpSession) -> Call[None]:
    """Return the call that confirms the session."""
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return Call(request(server, session, note), calls.refuse)


def listen(server: McpServer, session: McpSession) -> Request:
    """Return the request for the server's own messages. A server may refuse it (405)."""
    return Request("GET", server.url, {"Accept": MEDIA_TYPE, **_headers(server, session)})


def end(server: McpServer, session: McpSession) -> Call[None]:
    """Return the call that ends a session. A server may refuse it (405)."""
    return Call(Request("DELETE", server.url, _headers(server, session)), lambda _response: None)


def ask(
    server: McpServer, session: McpSession, method: str, params: Mapping[str, Any]
) -> Call[dict[str, Any]]:
    """Return the call of any method. Its answer is read as the result."""
    return Call(request(server, session, _message(method, params)), read_result)


def call_tool(
    server: McpServer, session: McpSession, tool: str, arguments: Mapping[str, Any]
) -> Call[McpResult]:
    """Return the call of a tool."""
    params = {"name": tool, "arguments": dict(arguments)}
    return Call(request(server, session, _message("tools/call", params)), read_tool_result)


def tools_of(page: Mapping[str, Any]) -> list[McpTool]:
    """Return the tools on a page of tools/list. Raise AnswerError if it is not one."""
    try:
        return [_tool(tool) for tool in page["tools"]]
    except (LookupError, TypeError, AttributeError) as error:
        message = f"tools/list did not return tools ({error!r:.100})."
        raise AnswerError(message, status=200, body=json.dumps(page)) from None


def next_cursor(page: Mapping[str, Any], followed: list[str]) -> str | None:
    """Return the cursor of the next page, and record it. Raise AnswerError for an endless list."""
    cursor = page.get("nextCursor")
    if not cursor:
        return None
    if cursor in followed or len(followed) >= MOST_PAGES:
        problem = "repeats a cursor" if cursor in followed else f"has more than {MOST_PAGES} pages"
        raise AnswerError(f"The list {problem}: {str(cursor)[:80]!r}.", status=200)
    followed.append(cursor)
    return str(cursor)


def _tool(tool: Mapping[str, Any]) -> McpTool:
    return McpTool(
        name=tool["name"],
        description=tool.get("description", ""),
        input_schema=tool["inputSchema"],
        output_schema=tool.get("outputSchema"),
    )


def read_result(response: httpx.Response) -> dict[str, Any]:
    """Return the result in an answer, which is JSON or the last of its events.

    Raises RefusedError for an HTTP error and for a JSON-RPC error, with its ``code``.
    """
    calls.refuse_by_json_rpc(response)
    calls.refuse(response)
    reply = next((it for it in messages(response) if "result" in it or "error" in it), None)
    if reply is None:
        raise _no_result(response)
    error = reply.get("error")
    if isinstance(error, dict):
        raise calls.refused_by_json_rpc(response, error)
    result = reply.get("result")
    if not isinstance(result, dict):
        raise _no_result(response)
    return result


def messages(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the JSON-RPC messages in an answer."""
    if not is_stream(response):
        yield calls.read_json(response)
        return
    for event in read_events(response):
        if event.data:
            yield json.loads(event.data)


def _message(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": dict(params)}


def request(server: McpServer, session: McpSession | None, message: Mapping[str, Any]) -> Request:
    """Return the request that sends a JSON-RPC message."""
    headers = {
        "Accept": f"application/json, {MEDIA_TYPE}",
        "Content-Type": "application/json",
        **_headers(server, session),
    }
    return Request("POST", server.url, headers, calls.json_content(message))


def _headers(server: McpServer, session: McpSession | None) -> dict[str, str]:
    headers = dict(server.headers)
    if session is not None:
        headers["MCP-Protocol-Version"] = session.version
        if session.id is not None:
            headers["MCP-Session-Id"] = session.id
    return headers


def _read_session(response: httpx.Response) -> McpSession:
    document = read_result(response)
    version = document.get("protocolVersion")
    if not isinstance(version, str):
        raise _no_result(response)
    return McpSession(version, response.headers.get("mcp-session-id"), document)


def read_tool_result(response: httpx.Response) -> McpResult:
    """Return the result of a tool call. Raise RefusedError, or AnswerError if it is not one."""
    result = read_result(response)
    content = result.get("content")
    if not isinstance(content, list) or not all(map(_is_block, content)):
        raise _no_result(response)
    return McpResult(
        is_error=bool(result.get("isError", False)),
        structured=result.get("structuredContent"),
        content=tuple(content),
    )


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    return block.get("type") != "text" or isinstance(block.get("text"), str)


def _no_result(response: httpx.Response) -> AnswerError:
    return calls.wrong_answer(
        response,
        f"{response.request.url} did not return an MCP result: {response.text[:200]}",
    )
