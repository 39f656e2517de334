"""What a double serves: the paths at ``/``, and ``/openapi.json`` for other languages.

The same rules hold as for other requests: they need the API key if there is one, and a foreign
Host or web page never gets them. They show paths and versions, but no keys or sessions.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.core.threads import run_in_thread
from agentdouble.openapi import Answer, Format, Operation, operation
from agentdouble.openapi.operation import Served, described
from agentdouble.surfaces.applications import HostedApplications
from agentdouble.surfaces.surface import Surface, SurfaceContext

_HINTS = {
    'eval "$(agentdouble env)"': "points a client at the double",
    "agentdouble demo": "shows a session's whole life",
    "agentdouble --help": "lists the commands",
    "emulator/docs": "says how to use each of these",
}

# No links: a browser has no token for the double's own routes.
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>agentdouble</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1rem; margin: 1.5rem 0 0.25rem }}
dl {{ display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0.25rem 1rem; margin: 0 }}
dd {{ margin: 0 }} code {{ user-select: all; overflow-wrap: anywhere }}
</style>
<h1>agentdouble {version}</h1>
<p>The double of a hosted agent platform, on your own machine. Type or paste an address:
links on this page would be refused.</p>
{sections}
</html>
"""

PATH = "/openapi.json"

_API_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "The double's API key (the setting api_key). All but MCP, Jupyter and the model "
    "also accept it in X-API-Key.",
}
_SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "HMAC-SHA256 Credential=<access key>/<date>/<region>/<service>/request, "
        "SignedHeaders=<names>, Signature=<hex>, and the header X-Date. The page "
        "emulator/docs/other-languages.md of agentdouble's repository describes the steps.",
    },
    "sessionToken": {
        "type": "apiKey",
        "in": "query",
        "name": "Authorization",
        "description": "The token in the query of a session's Endpoint.",
    },
    "serviceKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of the MCP service.",
    },
    "apiKey": _API_KEY,
}
_DESCRIPTION = (
    "The double of a hosted agent platform: its HTTP surfaces as this double serves them, with the "
    "applications it hosts. It omits WebSockets and routes that are not implemented. An armed "
    "fault may answer any operation with any status."
)


class LandingPage(Surface):
    """The page at ``/`` for people and programs that know only the double's address.

    The application at ``/invoke`` may answer there instead.
    """

    def routes(self) -> Sequence[BaseRoute]:
        """Return the route for ``GET /``; requests that name an action never reach it."""
        application = self.context.surface(HostedApplications).hosted.root
        return [Route("/", _Otherwise(application, self._answer), methods=["GET"])]

    def format(self) -> Format:
        """Return a format with a name, because this surface is not listed on the page."""
        return Format("Landing page")

    def _answer(self, request: Request) -> Response:
        """Return the page as HTML to a browser, and as JSON to a program."""
        headers = {"Vary": "Accept"}
        if "text/html" in request.headers.get("accept", ""):
            policy = "default-src 'none'; style-src 'unsafe-inline'"
            return HTMLResponse(
                self._html(), headers={**headers, "Content-Security-Policy": policy}
            )
        return JSONResponse(self._document(), headers=headers)

    def _document(self) -> dict[str, Any]:
        described = [(surface.name, surface.paths()) for surface in self.context.surfaces]
        return {
            "name": "agentdouble",
            "version": self.context.version,
            "surfaces": [{"name": name, "paths": paths} for name, paths in described if paths],
            "hints": _HINTS,
        }

    def _html(self) -> str:
        document = self._document()
        surfaces = "".join(_section(s["name"], s["paths"]) for s in document["surfaces"])
        version = html.escape(document["version"])
        return _PAGE.format(version=version, sections=surfaces + _section("Next", _HINTS))


@described(
    {"GET": Operation(answers=(Answer(dict[str, Any]), Answer(str, media_type="text/html")))}
)
class _Otherwise:
    """Return the page at the root, unless the application has one there."""

    def __init__(self, app: ASGIApp, otherwise: Callable[[Request], Response]) -> None:
        self._app = app
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_found = True

        async def send_if_found(message: Message) -> None:
            nonlocal is_found
            if message["type"] == "http.response.start":
                is_found = message["status"] != 404
            if is_found:
                await send(message)

        await self._app(scope, receive, send_if_found)
        if not is_found:
            await self._otherwise(Request(scope))(scope, receive, send)


def _section(title: str, rows: Mapping[str, str]) -> str:
    items = "".join(
        f"<dt><code>{html.escape(name)}</code></dt><dd>{html.escape(description)}</dd>"
        for name, description in rows.items()
    )
    return f"<section><h2>{html.escape(title)}</h2><dl>{items}</dl></section>"


# The real API server describes its own routes at this path, and they are part of this document.
# No other surface uses it: applications of this process answer at fixed paths, and runtimes below
# /runtimes.
class OpenApiDocument(Surface):
    """The OpenAPI document of the surfaces, made once."""

    name = "OpenAPI"

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        self._document: bytes | None = None

    def paths(self) -> Mapping[str, str]:
        """Return the path of the document."""
        return {PATH: "the surfaces as an OpenAPI document"}

    def routes(self) -> Sequence[BaseRoute]:
        """Return the route of the document."""
        return [Route(PATH, self._show)]

    @operation(dict[str, Any])
    async def _show(self, _request: Request) -> Response:
        """Return this document."""
        if self._document is None:
            surfaces = [
                (surface.format(), await surface.operations()) for surface in self.context.surfaces
            ]
            # in a thread, because its import and its schemas take a while
            self._document = await run_in_thread(lambda: self._build(surfaces))
        return Response(self._document, media_type="application/json")

    def _build(self, surfaces: Sequence[tuple[Format, Sequence[Served]]]) -> bytes:
        from agentdouble.openapi.document import document  # slow: 10 ms

        info = {
            "title": "agentdouble",
            "version": self.context.version,
            "description": _DESCRIPTION,
        }
        keyed = self.context.settings.api_key is not None
        return json.dumps(document(info, _SCHEMES, surfaces, keyed=keyed)).encode()
