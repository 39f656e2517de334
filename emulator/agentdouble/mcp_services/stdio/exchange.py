"""A request of the stateless era over HTTP, and its answer: JSON, or events if there are more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from mcp.server.streamable_http import check_accept_headers
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    validate_mcp_param_headers,
)
from mcp.types import HEADER_MISMATCH, METHOD_NOT_FOUND, PARSE_ERROR
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentdouble import strict_json
from agentdouble.disconnects import cancel_on_disconnect
from agentdouble.mcp_hosting import failure
from agentdouble.mcp_services.stdio.requests import SharedServer
from agentdouble.mcp_services.stdio.server import Message, failed, is_request, is_response

_PING_S = 15.0  # a stream that is silent for longer may be closed on its way
_STREAM = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}


async def answer(
    server: Callable[[], Awaitable[SharedServer]], scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a request; ``server`` is awaited for one that can be passed on."""
    request = Request(scope, receive)
    if request.method != "POST":
        refusal = failure(405, f"This version of MCP has no {request.method}.")
        refusal.headers["Allow"] = "POST"
        await refusal(scope, receive, send)
        return
    if not all(check_accept_headers(request)):
        await failure(406, "Accept application/json and text/event-stream.")(scope, receive, send)
        return
    message = _read(await request.body(), request)
    if isinstance(message, Response):
        await message(scope, receive, send)
        return
    shared = await server()
    refused = _wrong_header(shared, message, request)
    if refused is not None:
        await refused(scope, receive, send)
        return
    await cancel_on_disconnect(receive, _exchange(shared, message, send))


def _read(body: bytes, request: Request) -> Message | Response:
    """Return the message of a request, or what answers a request without one for the server."""
    try:
        message = strict_json.loads(body)
    except (ValueError, RecursionError) as error:
        return failure(400, f"The body is no JSON: {error}.", PARSE_ERROR)
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return failure(400, "The body is no single JSON-RPC request or notification.")
    if "id" not in message:  # the era has no notifications of clients
        return Response(status_code=202)
    if not is_request(message) or not isinstance(message["id"], (int, str)):
        return failure(400, "The id of a request is a number or a text.")
    twice = find_duplicated_routing_header(request.headers.items())
    if twice is not None:
        return failure(400, f"The header {twice} is there more than once.", HEADER_MISMATCH)
    verdict = classify_inbound_request(message, headers=dict(request.headers))
    if isinstance(verdict, InboundLadderRejection):
        return _rejected(message, verdict)
    if message["method"] == "initialize":  # over HTTP there is none; a stdio server says otherwise
        return _response(failed(message["id"], "Method not found", METHOD_NOT_FOUND))
    return message


def _wrong_header(shared: SharedServer, message: Message, request: Request) -> Response | None:
    """Refuse a call whose Mcp-Param headers are not its arguments, as a listed schema has them."""
    params = message.get("params", {})
    schema = shared.schemas.get(str(params.get("name")))
    arguments = params.get("arguments")
    if message["method"] != "tools/call" or schema is None:
        return None
    given = arguments if isinstance(arguments, dict) else {}
    rejection = validate_mcp_param_headers(schema, given, request.headers)
    return None if rejection is None else _rejected(message, rejection)


def _rejected(message: Message, rejection: InboundLadderRejection) -> Response:
    error = {"code": rejection.code, "message": rejection.message, "data": rejection.data}
    told = {name: value for name, value in error.items() if value is not None}
    return _response({"jsonrpc": "2.0", "id": message["id"], "error": told})


async def _exchange(shared: SharedServer, message: Message, send: Send) -> None:
    async with aclosing(shared.ask(message)) as messages:
        following = asyncio.ensure_future(_next(messages))
        try:
            await asyncio.wait({following}, timeout=_PING_S)
            if following.done() and is_response(following.result()):
                await _send(_response(following.result()), send)
                return
            start = {"type": "http.response.start", "status": 200, "headers": _headers()}
            await send(start)
            while True:
                await asyncio.wait({following}, timeout=_PING_S)
                if not following.done():
                    await _body(send, b": ping\r\n\r\n")
                    continue
                found = following.result()
                await _body(send, _event(found), more=not is_response(found))
                if is_response(found):
                    return
                following = asyncio.ensure_future(_next(messages))
        finally:
            following.cancel()
            await asyncio.wait({following})


async def _next(messages: AsyncGenerator[Message, None]) -> Message:
    return await messages.__anext__()


async def _send(response: Response, send: Send) -> None:
    headers = response.raw_headers
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await _body(send, bytes(response.body), more=False)


async def _body(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


def _headers() -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in _STREAM.items()]


def _event(message: Message) -> bytes:
    return f"event: message\r\ndata: {_json(message)}\r\n\r\n".encode()


def _response(message: Message) -> Response:
    error: Any = message.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    status = 200 if code is None else ERROR_CODE_HTTP_STATUS.get(code, 200)
    return Response(_json(message), status, media_type="application/json")


def _json(message: Message) -> str:
    return json.dumps(message, separators=(",", ":"))
