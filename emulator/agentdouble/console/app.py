"""The console's routes: the shell at each page's address, its modules, and the double behind it."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from agentdouble.console.double import Double
from agentdouble.console.forwarding import Actions, OwnRoutes, Served
from agentdouble.console.repeating import repeat
from agentdouble.resending import CannotRepeatError
from agentdouble.whole_paths import WholeMount

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
    return Starlette(
        routes=[
            *(Route(path, _shell, methods=["GET"]) for path in _addresses()),
            Route("/frame", _frame, methods=["GET"]),
            Route("/frame/scripts", _scripts_frame, methods=["GET"]),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/api/console/connection", routes.connection, methods=["GET"]),
            Route("/api/console/repeat/{id:int}", routes.repeat, methods=["POST"]),
            Route("/api/console/actions/{name}", Actions(double), methods=["POST"]),
            WholeMount("/api/served", Served(double)),
            WholeMount("/api", OwnRoutes(double)),
        ]
    )


def _addresses() -> list[str]:
    return ["/", *(f"/{page}{rest}" for page in PAGES for rest in ("", "/{id:rest}"))]


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
            return _refused("CannotRepeat", error)


def _refused(kind: str, error: CannotRepeatError) -> Response:
    return JSONResponse({"error": {"type": kind, "message": str(error)}}, error.status)
