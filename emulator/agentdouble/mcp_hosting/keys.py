"""API keys of a service, as a request presents them."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.types import Scope


def presented(scope: Scope) -> str | None:
    """Return the key of a request's ``Authorization: Bearer``, or None (section 4.3)."""
    value = header(scope, b"authorization")
    scheme, _, key = ("" if value is None else value).partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def find(key: str | None, keys: Sequence[str]) -> str | None:
    """Return which of the keys this one is, in a time that does not tell how near it came."""
    found = None
    for one in keys:
        if hmac.compare_digest(one.encode(), (key or "").encode("utf-8", "surrogatepass")):
            found = one
    return found


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of a request, or None."""
    return next((v.decode("latin-1") for n, v in scope["headers"] if n == name), None)
