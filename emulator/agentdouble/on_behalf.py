"""The mark of requests that the double makes for somebody: its own routes refuse those.

Whoever names an address for the double to call (a receiver of notifications, a backend, an issuer
of tokens) would otherwise steer the double by its own hand. The mark is a header and no list of
addresses, so it holds by whatever name a request finds its way back, redirected or not, and for
every double on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agentdouble.imports import import_now

if TYPE_CHECKING:
    import httpx

MARK = (b"x-agentdouble-on-behalf", b"1")


def is_marked(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request, by its headers with names in lower case, was made for somebody."""
    return any(name == MARK[0] for name, _ in headers)


def client(**options: Any) -> httpx.Client:
    """Return an httpx client whose requests are marked, each that a redirect leads to as well."""
    import_now("httpx", "httpcore")  # the start of the double does not wait for it
    import httpx

    return httpx.Client(**options, event_hooks={"request": [_mark]})


def async_client(**options: Any) -> httpx.AsyncClient:
    """Return an asynchronous httpx client whose requests are marked, as those of ``client``."""
    import_now("httpx", "httpcore")
    import httpx

    async def mark(request: httpx.Request) -> None:
        _mark(request)

    return httpx.AsyncClient(**options, event_hooks={"request": [mark]})


def headers() -> dict[str, str]:
    """Return the mark as headers."""
    name, value = MARK
    return {name.decode(): value.decode()}


def _mark(request: httpx.Request) -> None:
    request.headers.update(headers())
