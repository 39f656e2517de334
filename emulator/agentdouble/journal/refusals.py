"""Refusals of requests about the journal."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from agentdouble.server import guard


def refused(request: Request, status: int, kind: str, message: str) -> Response:
    """Return a refusal of a request in the format of the double's own routes."""
    return guard.render_json(request, guard.Refusal(status, kind, message))
