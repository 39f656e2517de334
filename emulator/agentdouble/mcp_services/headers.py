"""The headers that pass between a caller and a backend, and those that do not pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

RawHeaders = list[tuple[bytes, bytes]]

VIA = b"via"

_OF_ONE_HOP = frozenset(
    (
        *(b"connection", b"content-length", b"keep-alive", b"proxy-authenticate"),
        *(b"proxy-authorization", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
_STAYS_HERE = _OF_ONE_HOP | frozenset(  # they are for this server, not for the backend
    (b"authorization", b"cookie", b"expect", b"forwarded", b"host", b"origin", b"x-api-key")
)
_NOT_BACK = (_OF_ONE_HOP - {b"content-length"}) | frozenset(  # they reveal the backend
    (
        *(b"alt-svc", b"date", b"location", b"content-location", b"server", b"set-cookie"),
        *(b"strict-transport-security", b"via", b"www-authenticate", b"x-powered-by"),
    )
)


def onward(sent: Iterable[tuple[bytes, bytes]], own: Mapping[str, str], via: bytes) -> RawHeaders:
    """Return a caller's headers for the backend; the service's own headers replace them."""
    ours = [(name.lower().encode(), value.encode("latin-1")) for name, value in own.items()]
    replaced = {name for name, _ in ours}
    passed = [
        (name, value)
        for name, value in sent
        if name not in _STAYS_HERE and name not in replaced and not name.startswith(b"x-forwarded-")
    ]
    return [*passed, *ours, (VIA, via)]


def back(answered: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return a backend's headers for the caller."""
    lowered = ((name.lower(), value) for name, value in answered)
    return [
        (name, value)
        for name, value in lowered
        if name not in _NOT_BACK and not name.startswith(b"access-control-")
    ]


def without_content(answered: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return a backend's headers for the caller, without those that describe its content."""
    return [(name, value) for name, value in back(answered) if not name.startswith(b"content-")]
