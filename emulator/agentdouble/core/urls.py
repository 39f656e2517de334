"""URLs."""

from __future__ import annotations


def is_https(url: str) -> bool:
    """Return whether a URL's scheme is https, in any case (RFC 3986, 3.1)."""
    return url.lower().startswith("https:")
