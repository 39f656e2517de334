"""Refusals of requests about the journal, with a hint at the name that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from agentdouble.server import guard


def refused(request: Request, status: int, kind: str, message: str) -> Response:
    """Return a refusal of a request in the format of the double's own routes."""
    return guard.render_json(request, guard.Refusal(status, kind, message))


def hint(name: str, names: Sequence[str]) -> str:
    """Return a sentence with the name that was probably meant, or an empty string."""
    near = difflib.get_close_matches(name[:100].lower(), names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
