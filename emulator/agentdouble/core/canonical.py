"""The canonical text of a request, from which its signature is made, as real clients write it.

Clients agree on all but three things: whether a default port is part of the signed Host, whether
spaces inside a header's value are collapsed, and how the values of a repeated query key are
sorted. A verifier does not know the client, so it tries each of these ways. Nothing else is
lenient. ``tests/agentdouble/core/vectors/signing.json`` has requests byte for byte, good and bad,
recorded from real clients or made by hand. Other implementers may use it too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from urllib.parse import parse_qsl, quote

_BYTES = "surrogateescape"  # so that bytes which are not UTF-8 are signed unchanged


@dataclass(frozen=True)
class Request:
    """The parts of an HTTP request that a signature covers.

    ``path`` and ``query`` are decoded and header names are lower-case. ``repeated`` has the names
    of the headers that the request has more than once.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes = b""
    repeated: frozenset[str] = frozenset()


def read_query(query: bytes) -> tuple[tuple[str, str], ...]:
    """Return the decoded pairs of a raw query, in the same order, byte for byte."""
    text = query.decode("utf-8", _BYTES)
    return tuple(parse_qsl(text, keep_blank_values=True, errors=_BYTES))


@dataclass(frozen=True)
class CanonicalRequest:
    """The six parts of a canonical text; ``headers`` has a line for each header, with its end."""

    method: str
    path: str
    query: str
    headers: str
    signed: str
    payload: str

    def encode(self) -> bytes:
        """Return the text of which the signature is made."""
        lines = (self.method, self.path, self.query, self.headers, self.signed, self.payload)
        return "\n".join(lines).encode("utf-8", _BYTES)


def readings(request: Request, signed: Sequence[str]) -> Iterator[CanonicalRequest]:
    """Yield the canonical requests that clients may have signed, the most usual first.

    ``signed`` are the names exactly as in SignedHeaders; the request has all of them.
    """
    payload = hashlib.sha256(request.body).hexdigest()
    path = quote(request.path, safe="/-_.~", errors=_BYTES)
    for headers, query in product(_headers(request, signed), _queries(request)):
        yield CanonicalRequest(request.method, path, query, headers, ";".join(signed), payload)


def _queries(request: Request) -> Sequence[str]:
    by_key = sorted(request.query, key=lambda pair: pair[0])
    return _distinct(_joined(by_key), _joined(sorted(request.query)))


def _joined(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(f"{_quote(name)}={_quote(value)}" for name, value in pairs)


def _quote(text: str) -> str:
    return quote(text, safe="-_.~", errors=_BYTES)


def _headers(request: Request, signed: Sequence[str]) -> Sequence[str]:
    values = {name: request.headers[name.lower()].strip(" \t") for name in signed}
    collapsed = {name: re.sub(r"[ \t]+", " ", value) for name, value in values.items()}
    ways = (values, collapsed, _without_port(values), _without_port(collapsed))
    return _distinct(*("".join(f"{n}:{v}\n" for n, v in way.items()) for way in ways))


def _without_port(values: Mapping[str, str]) -> Mapping[str, str]:
    """Remove a default port from the host: one SDK sends ``host:80`` and signs ``host``."""
    host, _, port = values.get("host", "").rpartition(":")
    return {**values, "host": host} if port in ("80", "443") else values


def _distinct(*texts: str) -> Sequence[str]:
    return tuple(dict.fromkeys(texts))
