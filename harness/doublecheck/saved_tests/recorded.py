"""What a recorded exchange holds, as the calls of Platform need it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from doublecheck.comparing.answers import Answer
from doublecheck.comparing.references import parsed
from doublecheck.wire.exchanges import Exchange
from doublecheck.wire.redaction import HIDDEN

_NOT_SENT = frozenset(
    [
        *("host", "content-length", "connection", "accept", "accept-encoding", "user-agent"),
        *("authorization", "x-date", "x-content-sha256", "x-security-token", "cookie"),
    ]
)


class NotSpokenError(Exception):
    """A call for which Platform has no method."""


def require(holds: bool) -> None:
    """Raise NotSpokenError if a condition of a method of Platform does not hold."""
    if not holds:
        raise NotSpokenError


def path_and_query(url: str) -> str:
    """Return a URL without the address of the platform, which is another where the test runs."""
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def response_of(exchange: Exchange) -> httpx.Response:
    """Return the answer as the functions of ``wire`` read it."""
    request = httpx.Request(
        exchange.request.method, f"http://x{path_and_query(exchange.request.url)}"
    )
    kind = {"content-type": lower_names(exchange.headers).get("content-type", "")}
    return httpx.Response(
        exchange.status or 0, headers=kind, content=exchange.body, request=request
    )


def document_of(exchange: Exchange) -> Any:
    """Return the JSON of the answer."""
    return Answer(exchange.status, {}, exchange.body).document()


def object_of(exchange: Exchange) -> dict[str, Any]:
    """Return the JSON object that was sent; raise NotSpokenError if it was something else."""
    body = parsed(exchange.request.content.decode("utf-8", "replace"))
    require(isinstance(body, dict))
    return dict(body)


def own_headers(exchange: Exchange) -> dict[str, str]:
    """Return the headers that are the caller's own."""
    dropped = {*_NOT_SENT, "content-type"}
    return {
        name: value
        for name, value in exchange.request.headers.items()
        if name.lower() not in dropped and HIDDEN not in value
    }


def lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with names in lower case."""
    return {name.lower(): value for name, value in headers.items()}
