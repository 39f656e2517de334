"""The address and the headers that pass between a caller and an instance.

An application sees the caller's Host, so the URLs that it builds of itself are right. If a
redirect lacks the runtime's prefix, the gateway adds it on the way back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from starlette.types import Scope

from agentdouble import causes
from agentdouble.runtimes import PREFIX
from agentdouble.upstream import RawHeaders

_PLACE = PREFIX.strip("/")
_OF_ONE_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
_SAID_ANEW = frozenset((b"content-length", b"expect", b"forwarded", b"host", causes.RAW_HEADER))
_OF_THE_SERVER = frozenset((b"date", b"server"))  # the double's own server sets them
_OF_THE_ORIGIN = frozenset((b"service-worker-allowed",))  # a runtime shares its origin
_BODILESS = (204, 304)
OTHER_RUNTIME = re.compile(rf"{PREFIX}[^/]")
VIA = (b"via", b"1.1 agentdouble")


@dataclass(frozen=True)
class Address:
    """The runtime ``name``, which answers below ``prefix``, and the ``path`` of a request there.

    ``path`` is as the caller wrote it: ``%2F``, ``//`` and the like mean what they mean to the
    application. ``name`` is empty if the request is not for a runtime.
    """

    name: str
    prefix: str
    path: str

    def target(self, query: bytes) -> bytes:
        """Return the request target that is sent to an instance."""
        return self.path.encode("latin-1") + (b"?" + query if query else b"")


def read(scope: Scope) -> Address:
    """Return the runtime and the path that a request is for."""
    root: str = scope.get("root_path", "")
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    raw = raw.partition(b"?")[0]  # some clients in this process leave the query there
    place, name, path = (*raw.removeprefix(root.encode())[1:].split(b"/", 2), b"", b"")[:3]
    found = unquote(name) if unquote(place) == _PLACE else ""
    return Address(found, f"{root}{PREFIX}{found}", "/" + path.decode("latin-1"))


def value(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Return the value of the first header with this name, in lower case, or None."""
    return next((value for given, value in headers if given == name), None)


def onward(scope: Scope, address: Address) -> RawHeaders:
    """Return a request's headers for an instance, without Host and the body's length.

    ``X-Forwarded-For``, ``-Proto``, ``-Host`` and ``-Prefix`` report the caller's address and the
    URL that it called, and replace those that it sent. Only the double's own server accepts
    ``-For`` and ``-Proto`` from a caller, and only from loopback, where a proxy may stand in front.
    """
    sent = scope["headers"]
    stays = _OF_ONE_HOP | _SAID_ANEW | _named(sent)
    passed = [
        (name, value)
        for name, value in sent
        if name not in stays and not name.startswith(b"x-forwarded-")
    ]
    cause = [(name.encode(), value.encode()) for name, value in causes.headers().items()]
    return [*passed, *cause, *_forwarded(scope, address), VIA]


def _forwarded(scope: Scope, address: Address) -> RawHeaders:
    scheme: str = scope["scheme"]
    client = scope.get("client")
    told: dict[bytes, bytes | None] = {
        b"x-forwarded-for": client[0].encode("latin-1") if client else None,
        b"x-forwarded-proto": scheme.encode("latin-1"),
        b"x-forwarded-host": value(scope["headers"], b"host"),
        b"x-forwarded-prefix": address.prefix.encode(),
    }
    return [(name, value) for name, value in told.items() if value]


def back(status: int, answered: RawHeaders, scope: Scope, address: Address) -> RawHeaders:
    """Return an answer's headers for the caller, without a length that is not the body's."""
    stays = _OF_ONE_HOP | _OF_THE_SERVER | _OF_THE_ORIGIN | (_named(answered) - {b"content-length"})
    if status in _BODILESS or value(answered, b"transfer-encoding") is not None:
        stays |= {b"content-length"}
    return [
        (name, _location(value, scope, address) if name == b"location" else value)
        for name, value in answered
        if name not in stays
    ]


def _named(headers: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Return the headers that ``Connection`` lists as belonging to this hop alone."""
    named = [value.lower().split(b",") for name, value in headers if name == b"connection"]
    return frozenset(name.strip() for names in named for name in names)


def _location(location: bytes, scope: Scope, address: Address) -> bytes:
    """Return the target of a redirect, below the runtime's prefix if the application omitted it."""
    text = location.decode("latin-1")
    host = (value(scope["headers"], b"host") or b"").decode("latin-1")
    try:
        parts = urlsplit(text)
    except ValueError:
        return location
    below = parts.path.removeprefix(scope.get("root_path", ""))
    elsewhere = parts.netloc.lower() not in ("", host.lower()) or not below.startswith("/")
    if elsewhere or OTHER_RUNTIME.match(below):
        return location
    before = text.partition(parts.netloc)[0] + parts.netloc if parts.netloc else ""
    return f"{before}{address.prefix}{text[len(before) :]}".encode("latin-1")
