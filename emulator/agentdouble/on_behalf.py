"""The mark of requests that the double makes for a client; its own routes refuse them.

A client may give the double an address to call: a receiver of notifications, a backend, an issuer
of tokens. Without the mark, a client could use this to control the double. The mark is a header
and not a list of addresses. So it works for any name of an address, after redirects, and for every
double on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agentdouble.imports import import_now

if TYPE_CHECKING:
    import httpx

MARK = (b"x-agentdouble-on-behalf", b"1")


def is_marked(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether the double made a request for a client; header names are in lower case."""
    return any(name == MARK[0] for name, _ in headers)


def client(**options: Any) -> httpx.Client:
    """Return an httpx client that marks its requests, including those after redirects."""
    import_now("httpx", "httpcore")  # imported late, so that the double starts sooner
    import httpx

    return httpx.Client(**options, event_hooks={"request": [_mark]})


def async_client(**options: Any) -> httpx.AsyncClient:
    """Return an asynchronous httpx client that marks its requests, as ``client`` does."""
    import_now("httpx", "httpcore")
    import httpx

    async def mark(request: httpx.Request) -> None:
        _mark(request)

    return httpx.AsyncClient(**options, event_hooks={"request": [mark]})


def headers() -> dict[str, str]:
    """Return the mark as a dict of headers."""
    name, value = MARK
    return {name.decode(): value.decode()}


def _mark(request: httpx.Request) -> None:
    request.headers.update(headers())
