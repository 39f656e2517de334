"""A service that passes everything on to another MCP server, and its answers back, as they come.

It passes bytes on, not messages. So nothing is lost because this side does not know it: both eras
of the protocol pass, and later ones will. The backend's address and credentials are not shown to
callers: if its answer is not MCP, the answer may name the backend, so the service answers in its
own words, and the reason is in the log. An answer without content may have any type: servers on the
TypeScript SDK call an empty 202 text/plain. If a backend breaks off during a stream, the waiting
request gets an error in the stream.

A service sends HTTP to its backend itself, with httptools, which uvicorn also uses. That costs 0.1
ms per request where httpx costs 0.8 ms, and a service may cost its callers 1 ms in all. A request
is never sent twice: if it meets a closed connection, that is an error.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentdouble.errors import AnswerLostError, McpServiceError
from agentdouble.mcp_hosting import INTERNAL_ERROR, failure
from agentdouble.server.disconnects import cancel_on_disconnect
from agentdouble.server.exchange import OF_THIS_HOP
from agentdouble.server.upstream import Connections
from agentdouble.server.upstream_connection import UpstreamAnswer

RawHeaders = list[tuple[bytes, bytes]]

VIA = b"via"

_OF_ONE_HOP = OF_THIS_HOP | {b"proxy-authenticate", b"proxy-authorization"}
_STAYS_HERE = _OF_ONE_HOP | frozenset(  # meant for this server, not for the backend
    (b"authorization", b"cookie", b"forwarded", b"host", b"origin", b"x-api-key")
)
_NOT_BACK = (_OF_ONE_HOP - {b"content-length"}) | frozenset(  # would reveal the backend
    (
        *(b"alt-svc", b"date", b"location", b"content-location", b"server", b"set-cookie"),
        *(b"strict-transport-security", b"via", b"www-authenticate", b"x-powered-by"),
    )
)

METHODS = ("GET", "POST", "DELETE")
REDIRECTS = 3

_LARGEST_BLANK = 1024  # bytes
_MCP_CONTENT = ("application/json", "text/event-stream")
_log = logging.getLogger(__name__)


def onward(
    sent: Iterable[tuple[bytes, bytes]], headers: Mapping[str, str], via: bytes
) -> RawHeaders:
    """Return a caller's headers for the backend; the service's own headers replace them."""
    added = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    replaced = {name for name, _ in added}
    passed = [
        (name, value)
        for name, value in sent
        if name not in _STAYS_HERE and name not in replaced and not name.startswith(b"x-forwarded-")
    ]
    return [*passed, *added, (VIA, via)]


def back(sent: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return a backend's headers for the caller."""
    lowered = ((name.lower(), value) for name, value in sent)
    return [
        (name, value)
        for name, value in lowered
        if name not in _NOT_BACK and not name.startswith(b"access-control-")
    ]


class PassThrough:
    """Answers for the service ``name`` with the answers of the server at ``url``.

    ``own_headers`` are sent to the backend in place of the caller's Authorization.
    """

    def __init__(self, name: str, url: str, own_headers: Mapping[str, str]) -> None:
        self._name = name
        self._url = url
        self._own_headers = own_headers
        self._via = f"1.1 agentdouble-{secrets.token_hex(8)}".encode()
        self._connections = Connections(url)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep connections to the backend inside the block."""
        try:
            yield
        finally:
            self._connections.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._turned_away(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        await cancel_on_disconnect(receive, self._exchange(request, body, send))

    def _turned_away(self, scope: Scope) -> Response | None:
        if scope["method"] not in METHODS:
            answer = failure(405, f"MCP has no {scope['method']}.")
            answer.headers["Allow"] = ", ".join(METHODS)
            return answer
        if any(name == VIA and value == self._via for name, value in scope["headers"]):
            return self._failed("leads back to the service itself")
        return None

    async def _exchange(self, request: Request, body: bytes, send: Send) -> None:
        try:
            answer = await self._ask(request, body)
        except AnswerLostError as error:
            await self._lost(error)(request.scope, request.receive, send)
            return
        try:
            response = await self._response(answer, body)
            if response is None:
                await self._return(answer, body, send)
            else:
                await response(request.scope, request.receive, send)
        finally:
            answer.close()

    async def _ask(self, request: Request, body: bytes) -> UpstreamAnswer:
        """Return the backend's answer, before its body has come."""
        sent = onward(request.scope["headers"], self._own_headers, self._via)
        target = _target(self._url, request.scope["query_string"].decode("latin-1"))
        for _ in range(REDIRECTS):
            answer = await self._connections.ask(request.method, target, sent, body)
            moved = self._moved(answer)
            if moved is None:
                break
            answer.close()
            target = moved
        return answer

    def _moved(self, answer: UpstreamAnswer) -> str | None:
        """Return the new target of the request if the answer redirects it to the same server."""
        location = answer.header(b"location")
        if (
            answer.status not in (307, 308)
            or not location
            or not (location.isascii() and location.isprintable() and " " not in location)
        ):
            return None
        try:
            url = urlsplit(urljoin(self._url, location))
        except ValueError:
            return None
        backend = urlsplit(self._url)
        same = (url.scheme, url.netloc) == (backend.scheme, backend.netloc)
        return _target(url.geturl()) if same else None

    async def _response(self, answer: UpstreamAnswer, request_body: bytes) -> Response | None:
        """Return the response that replaces an answer, or None if the answer is passed on."""
        if 200 <= answer.status < 300 and _kind(answer) not in _MCP_CONTENT:
            try:
                # no client reads the content, such as the Accepted of Express's sendStatus
                is_receipt = answer.status == 202 and _request_id(request_body) is None
                if await _is_blank(answer) or is_receipt:
                    return _without_content(answer)
            except AnswerLostError as error:
                return self._lost(error)
        return self._refusal(answer)

    def _refusal(self, answer: UpstreamAnswer) -> Response | None:
        """Return the refusal that replaces an answer that is not MCP, or None."""
        status, kind = answer.status, _kind(answer)
        if status == 401:
            return self._failed("refuses the credentials that the service has for it (401)")
        if 300 <= status < 400:
            return self._failed(f"redirects elsewhere ({status})")
        if kind in _MCP_CONTENT or (kind is None and answer.header(b"content-length") == "0"):
            return None
        if 400 <= status < 500:
            return failure(status, f"The backend of the MCP service {self._name!r} refuses this.")
        return self._failed(f"answers {status} with {kind or 'no type'}, which is not MCP")

    async def _return(self, answer: UpstreamAnswer, request_body: bytes, send: Send) -> None:
        start = {"type": "http.response.start", "status": answer.status}
        await send({**start, "headers": back(answer.headers)})
        last, resumable = b"", False
        while not answer.done:
            try:
                chunk = await answer.read()
            except AnswerLostError as error:
                message = (
                    f"The backend of the MCP service {self._name!r} broke off amid its answer."
                )
                _log.warning("%s %s", message, error)
                if _kind(answer) != "text/event-stream":  # break the caller's connection, too
                    raise McpServiceError(message, service=self._name) from error
                # Without an error event the client knows what to do.
                is_complete = last.endswith(b"\n") and not resumable
                event = _error_event(request_body, message) if is_complete else b""
                await send({"type": "http.response.body", "body": event})
                return
            last = chunk or last
            resumable = resumable or b"\nid:" in b"\n" + chunk
            await send({"type": "http.response.body", "body": chunk, "more_body": not answer.done})

    def _lost(self, error: AnswerLostError) -> Response:
        _log.warning("The backend of the MCP service %s: %s", self._name, error)
        if error.silent:
            return self._failed("does not answer", 504)
        if error.unreached:
            return self._failed("cannot be reached")
        return self._failed("broke off, or does not speak HTTP")

    def _failed(self, what: str, status: int = 502) -> Response:
        message = f"The backend of the MCP service {self._name!r} {what}."
        return failure(status, message, INTERNAL_ERROR)


def _target(url: str, query: str = "") -> str:
    """Return the path and query of a URL, with ``query`` added."""
    parts = urlsplit(url)
    queries = "&".join(query_part for query_part in (parts.query, query) if query_part)
    return (parts.path or "/") + (f"?{queries}" if queries else "")


def _kind(answer: UpstreamAnswer) -> str | None:
    kind = (answer.header(b"content-type") or "").partition(";")[0].strip().lower()
    return kind or None


async def _is_blank(answer: UpstreamAnswer) -> bool:
    """Return whether an answer has no content or only white space; read no further than needed."""
    size = 0
    while not answer.done:
        chunk = await answer.read()
        size += len(chunk)
        if chunk.strip() or size > _LARGEST_BLANK:
            return False
    return True


def _without_content(answer: UpstreamAnswer) -> Response:
    response = Response(status_code=answer.status)
    response.raw_headers += [
        pair for pair in back(answer.headers) if not pair[0].startswith(b"content-")
    ]
    return response


def _error_event(request_body: bytes, message: str) -> bytes:
    """Return the last event of a broken stream: an error for the request that waits, if one does."""
    id_ = _request_id(request_body)
    if id_ is None:
        return b""
    error = {"code": INTERNAL_ERROR, "message": message}
    data = json.dumps({"jsonrpc": "2.0", "id": id_, "error": error})
    return f"event: message\ndata: {data}\n\n".encode()


def _request_id(request_body: bytes) -> str | int | None:
    """Return the id of a JSON-RPC request, or None for any other message."""
    try:
        message = json.loads(request_body)
    except (ValueError, RecursionError):
        return None
    id_ = message.get("id") if isinstance(message, dict) and "method" in message else None
    return id_ if isinstance(id_, (str, int)) else None
