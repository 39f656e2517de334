"""The console's routes: the shell at each page's address, its modules, and the double behind it."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.console.checks import READING, Double
from agentdouble.core import invoke_tool, strict_json
from agentdouble.journal import resending
from agentdouble.journal.entries import UNSEEN, current_entry
from agentdouble.journal.resending import CannotRepeatError
from agentdouble.server.disconnects import replay
from agentdouble.server.guard import OWN
from agentdouble.server.protocols import TRANSPORT

_API = b"/api"
_SERVED = b"/api/served"
_FILES = b"/v1/file/"  # of a session: to read them takes a POST
REQUEST_HEADER = "x-agentdouble-request"


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
        signed = invoke_tool.build(body, address, now, action=request.path_params["name"])
        url = urlsplit(signed.url)
        headers = {
            **signed.headers,
            invoke_tool.RUN_HEADER: request.headers.get(invoke_tool.RUN_HEADER, ""),
        }
        sent = [(name.lower().encode(), value.encode()) for name, value in headers.items() if value]
        signed_scope = {
            **_seen(scope, request.path_params["name"].startswith(("Get", "List"))),
            "path": url.path,
            "raw_path": url.path.encode(),
            "root_path": "",
            "query_string": url.query.encode(),
            "headers": sent,
        }
        await self._double.app(signed_scope, with_body(signed.body, receive), send)


def _seen(scope: Scope, looks: bool) -> Scope:
    """Return a scope; what a page looks at is not in the journal, which is about the user's clients."""
    return {**scope, UNSEEN: True} if looks else scope


def _raw(scope: Scope) -> bytes:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return path


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` of this body, and then of what becomes of the connection."""
    return replay([{"type": "http.request", "body": body, "more_body": False}], receive)


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
    await request.body()  # what follows it is the end of the connection
    status: int | None = None

    async def told(message: Message) -> None:  # the page asks the journal for the rest
        nonlocal status
        status = message.get("status", status)

    watched = Watched(with_body(body, request.receive), told)
    # without its connection, so that no fault ends the console's own
    scope = {name: value for name, value in request.scope.items() if name != TRANSPORT}
    with contextlib.suppress(ConnectionResetError):  # a fault, as its entry says
        await double.app({**scope, **changed}, watched.receive, watched.send)
    return {"id": watched.id, "status": status}


STATIC = Path(__file__).parent / "static"
_FRAME = (STATIC / "frame.html").read_bytes()
_SCRIPTED = (STATIC / "frame_scripts.html").read_bytes()
_SCRIPT = _FRAME.partition(b"<script>")[2].partition(b"</script>")[0]
_POLICY = (
    "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    f"script-src 'sha256-{base64.b64encode(hashlib.sha256(_SCRIPT).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
# Scripts of an output run, but the frame has no origin and no network. If it goes to another address,
# frame-src in the policy of the console's page refuses that; Chromium has connected to the host by
# then, and sends it nothing.
_SCRIPTS_POLICY = (
    "sandbox allow-scripts; default-src 'none'; img-src data: blob:; font-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
PAGES = ("sessions", "requests", "agents", "tools", "unknowns", "faults")


def make_app(double: Double) -> ASGIApp:
    """Return the application of a double's console."""
    routes = _Routes(double)
    addresses = ["/", *(f"/{page}{suffix}" for page in PAGES for suffix in ("", "/{id:path}"))]
    return Starlette(
        routes=[
            *(Route(path, _shell, methods=["GET"]) for path in addresses),
            Route("/frame", _frame, methods=["GET"]),
            Route("/frame/scripts", _scripts_frame, methods=["GET"]),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/api/console/connection", routes.connection, methods=["GET"]),
            Route("/api/console/repeat/{id:int}", routes.repeat, methods=["POST"]),
            Route("/api/console/actions/{name}", Actions(double), methods=["POST"]),
            Mount("/api/served", routes.served),
            Mount("/api", routes.own),
        ]
    )


async def _shell(_request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def _frame(_request: Request) -> Response:
    """Return the page inside the frames of HTML outputs, which runs no script but its own.

    Inside the sandbox 'self' is nothing, so the script stands in the page and is named by its hash.
    The console's own policy lets no frame go to another origin.
    """
    return Response(_FRAME, media_type="text/html", headers={"Content-Security-Policy": _POLICY})


async def _scripts_frame(_request: Request) -> Response:
    """Return the page inside the frames of outputs whose scripts a person has asked to run."""
    headers = {"Content-Security-Policy": _SCRIPTS_POLICY, "X-DNS-Prefetch-Control": "off"}
    return Response(_SCRIPTED, media_type="text/html", headers=headers)


class _Routes:
    def __init__(self, double: Double) -> None:
        self._double = double

    async def connection(self, _request: Request) -> Response:
        """Return what a client needs to call the double, its secret key included."""
        double = self._double
        return JSONResponse(
            {
                "url": double.connection.url,
                "version": double.version,
                "tool_id": double.connection.tool_id,
                "ca_file": double.connection.ca_file,
                "served": dict(double.served),
                "a2a": dict(double.a2a),
                "variables": dict(double.variables),
                "keyed": double.api_key is not None,
            }
        )

    async def repeat(self, request: Request) -> Response:
        """Send a request of the journal once more; return the new one's id and status."""
        try:
            return JSONResponse(await repeat(self._double, request))
        except CannotRepeatError as error:
            document = {"error": {"type": "CannotRepeat", "message": str(error)}}
            return JSONResponse(document, error.status)

    async def served(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the double answer what it serves to its clients."""
        path = _raw(scope)[len(_SERVED) :] or b"/"
        answer = _AsData(receive, send)
        looks = scope["method"] in READING or path.startswith(_FILES)
        await self._double.send_on(_seen(scope, looks), answer.receive, answer.send, path)

    async def own(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the double answer at its own routes."""
        path = OWN.encode() + _raw(scope)[len(_API) :]
        await self._double.send_on(scope, receive, send, path)
