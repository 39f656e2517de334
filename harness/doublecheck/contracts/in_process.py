"""Applications of the library that a check decorates and calls in its own process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import httpx

from doublecheck.contracts.sentences import short
from doublecheck.wire import mcp
from doublecheck.wire.calls import Call

T = TypeVar("T")

Decorate = Callable[[Any], Any]

URL = "http://localhost"
A2A_VERSION = {"A2A-Version": "1.0"}


def accepted(decorate: Decorate, things: Iterable[Any]) -> list[Any]:
    """Return the functions or classes that a decorator accepts. It raises TypeError for others."""
    return [thing for thing in things if refusal(decorate, thing) is None]


def refusal(decorate: Decorate, thing: Any) -> str | None:
    """Return the message with which a decorator refuses an object, or None if it accepts."""
    try:
        decorate(thing)
    except TypeError as error:
        return str(error)
    return None


def invoked(app: Any, payload: Mapping[str, Any], headers: Mapping[str, str]) -> httpx.Response:
    """Return a simple application's answer to an invocation."""
    return _run(app, lambda client: client.post("/invoke", json=payload, headers=headers))


def got(app: Any, path: str) -> httpx.Response:
    """Return an application's answer to GET."""
    return _run(app, lambda client: client.get(path))


def tool_names(app: Any) -> list[str]:
    """Return the names of the tools that an MCP application lists."""
    page = _called(app, lambda server, session: mcp.ask(server, session, "tools/list", {}))
    return [tool.name for tool in mcp.tools_of(page)]


def tool_result(app: Any, tool: str, arguments: Mapping[str, Any]) -> Any:
    """Return what an MCP application's tool returned: its text, or the object."""
    result = _called(app, lambda server, session: mcp.call_tool(server, session, tool, arguments))
    assert not result.is_error, f"{tool} returns an error: {short(result.text)}"
    return result.text if result.structured is None else result.structured


def sent(app: Any, text: str) -> dict[str, Any]:
    """Return an A2A application's answer to a message: a task or a message."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    answer = rpc(app, "SendMessage", {"message": message})
    assert "result" in answer, f"SendMessage returned an error: {answer}"
    result: dict[str, Any] = next(iter(answer["result"].values()))
    return result


def rpc(app: Any, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return an A2A application's answer to a JSON-RPC method."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer: dict[str, Any] = _run(
        app, lambda client: client.post("/", json=body, headers=A2A_VERSION)
    ).json()
    return answer


def _run(app: Any, ask: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
    """Return the answer of an application that runs for this request only."""

    async def running() -> T:
        transport = httpx.ASGITransport(app)
        async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url=URL) as client:
            return await ask(client)

    return asyncio.run(running())


def _called(app: Any, make: Callable[[mcp.McpServer, mcp.McpSession], Call[T]]) -> T:
    """Return an MCP application's answer to a call within a session."""
    server = mcp.McpServer(URL + mcp.PATH)

    async def within_a_session(client: httpx.AsyncClient) -> T:
        session = await _answer(client, mcp.initialize(server))
        await _answer(client, mcp.initialized(server, session))
        return await _answer(client, make(server, session))

    return _run(app, within_a_session)


async def _answer(client: httpx.AsyncClient, call: Call[T]) -> T:
    request = call.request
    response = await client.request(
        request.method, request.url, headers=request.headers, content=request.content
    )
    return call.read(response)
