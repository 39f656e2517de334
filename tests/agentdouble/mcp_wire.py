"""MCP by hand: JSON-RPC over streamable HTTP, without a client library."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from httpx_sse import EventSource

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ACCEPT = "application/json, text/event-stream"

# One client for all: each new one would read the machine's certificates first (20 ms).
http = httpx.Client(
    timeout=60,
    trust_env=False,
    verify=False,
    limits=httpx.Limits(max_keepalive_connections=0),
)


def message(method: str, params: Mapping[str, Any] | None = None, id_: int = 1) -> dict[str, Any]:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": dict(params or {})}


INITIALIZE = message(
    "initialize",
    {
        "protocolVersion": LEGACY,
        "capabilities": {"sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "wire", "version": "1"},
    },
)


def headers(key: str | None, session: str | None = None, **more: str) -> dict[str, str]:
    """Return the headers of a request with a key and a session."""
    headers = {"Accept": ACCEPT, "Content-Type": "application/json", **more}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": LEGACY}
    return headers


def post(url: str, body: Any, key: str | None, session: str | None = None) -> httpx.Response:
    """Send a message and return the complete answer."""
    return http.post(url, json=body, headers=headers(key, session))


def open_session(url: str, key: str | None) -> str:
    """Open a session and return its id."""
    answer = post(url, INITIALIZE, key)
    assert answer.status_code == 200, answer.text
    session = answer.headers["mcp-session-id"]
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(url, note, key, session).status_code == 202
    return str(session)


def call(url: str, key: str | None, session: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return the result."""
    body = message("tools/call", {"name": tool, "arguments": arguments}, 7)
    return result(post(url, body, key, session))


def call_modern(url: str, key: str | None, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool with the protocol version that has no sessions."""
    return result(http.post(url, json=modern(tool, arguments), headers=modern_headers(key, tool)))


def modern(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool call for the version without sessions."""
    about = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return message("tools/call", {"name": tool, "arguments": dict(arguments), "_meta": about}, 7)


def modern_headers(key: str | None, tool: str, **more: str) -> dict[str, str]:
    """Return the headers of a call for the version without sessions."""
    about = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return {**headers(key), **about, **more}


def result(answer: httpx.Response) -> dict[str, Any]:
    """Return the result in an answer."""
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = replies(answer)[-1]
    assert "result" in reply, reply
    inner: dict[str, Any] = reply["result"]
    return inner


def replies(answer: httpx.Response) -> list[Any]:
    """Return the messages of an answer, either JSON or an event stream."""
    if answer.headers["content-type"].startswith("application/json"):
        return [answer.json()]
    return [json.loads(event.data) for event in EventSource(answer).iter_sse() if event.data]


def error(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the message of a JSON-RPC error without an id."""
    body = answer.json()
    assert (body["jsonrpc"], body["id"]) == ("2.0", None), body
    return answer.status_code, body["error"]["message"]


@contextmanager
def waiting(url: str, body: Any, sent: Mapping[str, str]) -> Iterator[None]:
    """Keep a request waiting inside the block, then disconnect without its answer."""
    request = httpx.Request("POST", url, json=body, headers=dict(sent))
    lines = [f"POST {request.url.raw_path.decode()} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    with socket.create_connection((request.url.host, request.url.port)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + request.content)
        yield


@contextmanager
def streamed(
    url: str, key: str | None, session: str, body: Any = None
) -> Iterator[tuple[httpx.Response, Iterator[Any]]]:
    """Open a session's stream; yield the answer and its messages as they arrive."""
    method = "GET" if body is None else "POST"
    with http.stream(method, url, json=body, headers=headers(key, session)) as answer:
        events = (json.loads(event.data) for event in EventSource(answer).iter_sse() if event.data)
        yield answer, events
