"""What the console passes on to its double.

=============================== ==================================================================
``/api/PATH``                   the double's own route ``/_emulator/PATH``
``/api/served/PATH``            ``/PATH``: agents, MCP services, sessions' data plane and all else
``/api/console/actions/NAME``   an action of the control plane, with the body of the request, signed
=============================== ==================================================================
"""

from __future__ import annotations

import datetime as dt
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from agentdouble import invoke_tool, strict_json
from agentdouble.console.checks import READING
from agentdouble.console.double import Double
from agentdouble.guard import OWN
from agentdouble.journal import UNSEEN, current_entry

_API = b"/api"
_SERVED = b"/api/served"
_FILES = b"/v1/file/"  # of a session: to read them takes a POST
REQUEST_HEADER = "x-agentdouble-request"


class OwnRoutes:
    """The double's own routes."""

    def __init__(self, double: Double) -> None:
        self._double = double

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = OWN.encode() + _raw(scope)[len(_API) :]
        await self._double.send_on(scope, receive, send, path)


class Served:
    """What the double serves to its clients."""

    def __init__(self, double: Double) -> None:
        self._double = double

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _raw(scope)[len(_SERVED) :] or b"/"
        answer = _AsData(receive, send)
        looks = scope["method"] in READING or path.startswith(_FILES)
        await self._double.send_on(_seen(scope, looks), answer.receive, answer.send, path)


class Actions:
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
        address = invoke_tool.Address(connection.url, self._double.credentials, connection.region)
        now = dt.datetime.now(dt.timezone.utc)
        made = invoke_tool.build(body, address, now, action=request.path_params["name"])
        url = urlsplit(made.url)
        headers = {
            **made.headers,
            invoke_tool.RUN_HEADER: request.headers.get(invoke_tool.RUN_HEADER, ""),
        }
        sent = [(name.lower().encode(), value.encode()) for name, value in headers.items() if value]
        asked = {
            **_seen(scope, request.path_params["name"].startswith(("Get", "List"))),
            "path": url.path,
            "raw_path": url.path.encode(),
            "root_path": "",
            "query_string": url.query.encode(),
            "headers": sent,
        }
        await self._double.app(asked, with_body(made.body, receive), send)


def _seen(scope: Scope, looks: bool) -> Scope:
    """Return a scope; what a page looks at is not in the journal, which is about the user's clients."""
    return {**scope, UNSEEN: True} if looks else scope


def _raw(scope: Scope) -> bytes:
    found: bytes = scope.get("raw_path") or scope["path"].encode()
    return found


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` of this body, and then of what becomes of the connection."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message


class Watched:
    """A request that is passed on; ``id`` is that of its entry in the journal, as soon as it is known.

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


class _AsData(Watched):
    """Makes an answer of an application one that no browser shows as a page of the console.

    It also names the request's entry in the journal, so that a page can lead there.
    """

    async def send(self, message: Message) -> None:
        self._look()
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            del headers["set-cookie"]
            headers["content-security-policy"] = "sandbox; default-src 'none'"
            if self.id is not None:
                headers[REQUEST_HEADER] = str(self.id)
            message = {**message, "headers": headers.raw}
        await super().send(message)
