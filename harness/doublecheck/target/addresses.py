"""Addresses: their validation, and whether an address belongs to this machine."""

from __future__ import annotations

from urllib.parse import urlsplit

from agentdouble import addresses
from doublecheck.errors import TargetError


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine; False if it is not a URL."""
    try:
        return addresses.is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def checked(url: str) -> str:
    """Return an address without its trailing slash; raise TargetError for an unusable one."""
    explanation = f"{url!r} is no usable address; it must read http://host[:port] or https://host"
    if url and "/" not in url.partition("?")[0]:
        explanation += f", 'http://{url}' say"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises ValueError for a wrong port)
    except ValueError as error:
        raise TargetError(f"{explanation} ({error}).") from None
    if not url.isprintable() or " " in url:
        raise TargetError(f"{explanation}, without spaces and control characters.")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TargetError(f"{explanation}.")
    if parts.query or parts.fragment or parts.username:
        raise TargetError(f"{explanation}, without a user, a query or a fragment.")
    return url.rstrip("/")
