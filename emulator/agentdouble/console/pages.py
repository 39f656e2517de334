"""The pages of the console: the shell at each page's address, and the frames of HTML outputs."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

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
SINGLE = ("unknowns",)  # pages without others below them


async def shell(_request: Request) -> Response:
    """Return the document in which JavaScript shows the page at an address."""
    return FileResponse(STATIC / "index.html")


async def no_page(_request: Request) -> Response:
    """Return the same document, which says at an address without a page that there is none."""
    return FileResponse(STATIC / "index.html", 404)


async def frame(_request: Request) -> Response:
    """Return the page inside the frames of HTML outputs, which runs no script but its own.

    Inside the sandbox, 'self' matches nothing, so the script is in the page and the policy has its
    hash. The console's own policy lets no frame go to another origin.
    """
    return Response(_FRAME, media_type="text/html", headers={"Content-Security-Policy": _POLICY})


async def scripts_frame(_request: Request) -> Response:
    """Return the page inside the frames of outputs whose scripts a person has asked to run."""
    headers = {"Content-Security-Policy": _SCRIPTS_POLICY, "X-DNS-Prefetch-Control": "off"}
    return Response(_SCRIPTED, media_type="text/html", headers=headers)
