"""The console's routes: the shell at each page's address, its modules, and the double behind it."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.console.checks import READING
from agentdouble.console.double import Double
from agentdouble.console.pages import PAGES, SINGLE, STATIC, frame, no_page, scripts_frame, shell
from agentdouble.console.relayed_requests import (
    REQUEST_HEADER,
    ActionCalls,
    WatchedRequest,
    repeat,
    unlogged,
)
from agentdouble.journal.resending import CannotRepeatError
from agentdouble.server.guard import OWN

_API = b"/api"
_SERVED = b"/api/served"
_FILES = b"/v1/file/"  # of a session: reading them takes a POST


def _raw(scope: Scope) -> bytes:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return path


class _AsData(WatchedRequest):
    """Changes an application's answer so that no browser shows it as a page of the console.

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


def make_app(double: Double) -> ASGIApp:
    """Return the application of a double's console."""
    routes = _ConsoleRoutes(double)
    below = (f"/{page}/{{id:path}}" for page in PAGES if page not in SINGLE)
    addresses = ["/", *(f"/{page}" for page in PAGES), *below]
    return Starlette(
        routes=[
            *(Route(path, shell, methods=["GET"]) for path in addresses),
            Route("/frame", frame, methods=["GET"]),
            Route("/frame/scripts", scripts_frame, methods=["GET"]),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/api/console/connection", routes.connection, methods=["GET"]),
            Route("/api/console/repeat/{id:int}", routes.repeat, methods=["POST"]),
            Route("/api/console/actions/{name}", ActionCalls(double), methods=["POST"]),
            Mount("/api/served", routes.served),
            Mount("/api", routes.own),
            Route("/{path:path}", no_page, methods=["GET"]),
        ]
    )


class _ConsoleRoutes:
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
        """Have the double answer at the routes that it serves to clients."""
        path = _raw(scope)[len(_SERVED) :] or b"/"
        answer = _AsData(receive, send)
        looks = scope["method"] in READING or path.startswith(_FILES)
        await self._double.send_on(unlogged(scope, looks), answer.receive, answer.send, path)

    async def own(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the double answer at its own routes."""
        path = OWN.encode() + _raw(scope)[len(_API) :]
        await self._double.send_on(scope, receive, send, path)
