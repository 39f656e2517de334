"""Requests that the console passes on: actions, and entries of the journal that are sent again."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from agentdouble.console.double import Double
from agentdouble.core import invoke_tool, strict_json
from agentdouble.journal import resending
from agentdouble.journal.entries import UNSEEN, current_entry
from agentdouble.server.disconnects import replay
from agentdouble.server.protocols import TRANSPORT

REQUEST_HEADER = "x-agentdouble-request"


class ActionCalls:
    """Actions of the control plane."""

    def __init__(self, double: Double) -> None:
        self._double = double

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection, request = self._double.connection, Request(scope, receive)
        try:
            body = strict_json.loads(await request.body())
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            error = {"type": "BadRequest", "message": "The body of an action is a JSON object."}
            await JSONResponse({"error": error}, 400)(scope, receive, send)
            return
        address = invoke_tool.ToolAddress(
            connection.url, self._double.credentials, connection.region
        )
        now = dt.datetime.now(dt.timezone.utc)
        signed = invoke_tool.build(body, address, now, action=request.path_params["name"])
        url = urlsplit(signed.url)
        headers = {
            **signed.headers,
            invoke_tool.RUN_HEADER: request.headers.get(invoke_tool.RUN_HEADER, ""),
        }
        sent = [(name.lower().encode(), value.encode()) for name, value in headers.items() if value]
        signed_scope = {
            **unlogged(scope, request.path_params["name"].startswith(("Get", "List"))),
            "path": url.path,
            "raw_path": url.path.encode(),
            "root_path": "",
            "query_string": url.query.encode(),
            "headers": sent,
        }
        await self._double.app(signed_scope, with_body(signed.body, receive), send)


def unlogged(scope: Scope, looks: bool) -> Scope:
    """Return a scope; the journal omits what pages read, because it is for the user's clients."""
    return {**scope, UNSEEN: True} if looks else scope


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives this body, and then the connection's later messages."""
    return replay([{"type": "http.request", "body": body, "more_body": False}], receive)


class WatchedRequest:
    """A request that is passed on; ``id`` is its journal entry's id, as soon as that is known.

    The entry is known while the body is read; errors are sent when the request is not current any
    more.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.id: int | None = None

    async def receive(self) -> Message:
        """Receive the next message."""
        self._look()
        return await self._receive()

    async def send(self, message: Message) -> None:
        """Send a message of the answer."""
        self._look()
        await self._send(message)

    def _look(self) -> None:
        entry = current_entry.get()
        if entry is not None:
            self.id = entry.id


async def repeat(double: Double, request: Request) -> dict[str, Any]:
    """Send the entry that a request names once more; raise CannotRepeatError."""
    entry = double.journal.find(request.path_params["id"])
    if entry is None:
        raise resending.dropped_entry_error()
    body = resending.whole_body(entry)
    parts = urlsplit(entry.url)
    changed = {
        "method": entry.method,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": resending.headers(entry, body, double.credentials),
    }
    await request.body()  # so that the next message is the disconnect
    status: int | None = None

    async def told(message: Message) -> None:  # the page asks the journal for the rest
        nonlocal status
        status = message.get("status", status)

    watched = WatchedRequest(with_body(body, request.receive), told)
    # without its connection, so that no fault ends the console's own
    scope = {name: value for name, value in request.scope.items() if name != TRANSPORT}
    # a fault reset the connection; the entry says so
    with contextlib.suppress(ConnectionResetError):
        await double.app({**scope, **changed}, watched.receive, watched.send)
    return {"id": watched.id, "status": status}
