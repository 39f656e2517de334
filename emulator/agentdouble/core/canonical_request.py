"""The canonical text of a request, from which its signature is made, as real clients write it.

Clients agree on all but three things: whether a default port is part of the signed Host, whether
spaces inside a header's value are collapsed, and how the values of a repeated query key are
sorted. A verifier does not know the client, so it tries each of these ways. Nothing else is
lenient. ``signing_vectors.json`` has requests byte for byte, good and bad, recorded from real
clients or made by hand. Other implementers may use it too.

``mismatch`` and ``message`` help the author of a client whose signature does not match. They show
the verifier's canonical request and string to sign, and never the right signature, which would let
the request in. Secrets in the query and the headers are shown as ``***``, but hashed as they are.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from agentdouble.core.redaction import REDACTED, redact, without_secrets
from agentdouble.core.secret_names import is_secret_parameter

_BYTES = "surrogateescape"  # so that bytes which are not UTF-8 are signed unchanged


@dataclass(frozen=True)
class SignableRequest:
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


def readings(request: SignableRequest, signed: Sequence[str]) -> Iterator[CanonicalRequest]:
    """Yield the canonical requests that clients may have signed, the most usual first.

    ``signed`` are the names exactly as in SignedHeaders; the request has all of them.
    """
    payload = hashlib.sha256(request.body).hexdigest()
    path = quote(request.path, safe="/-_.~", errors=_BYTES)
    for headers, query in product(_headers(request, signed), _queries(request)):
        yield CanonicalRequest(request.method, path, query, headers, ";".join(signed), payload)


def _queries(request: SignableRequest) -> Sequence[str]:
    by_key = sorted(request.query, key=lambda pair: pair[0])
    return _distinct(_joined(by_key), _joined(sorted(request.query)))


def _joined(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(f"{_quote(name)}={_quote(value)}" for name, value in pairs)


def _quote(text: str) -> str:
    return quote(text, safe="-_.~", errors=_BYTES)


def _headers(request: SignableRequest, signed: Sequence[str]) -> Sequence[str]:
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


_LONGEST = 2000  # characters of a text in an answer


def mismatch(
    request: SignableRequest, canonical: CanonicalRequest, string_to_sign: str
) -> Mapping[str, Any]:
    """Return the comparable data, JSON-ready, with a sentence if the body's hash is wrong."""
    query = "&".join(map(_shown_parameter, canonical.query.split("&")))
    # not splitlines(), which would break a value with a NEL
    headers = "".join(map(_shown_header, canonical.headers.split("\n")[:-1]))
    text = replace(canonical, query=query, headers=headers).encode().decode("utf-8", "replace")
    announced, differs = request.headers.get("x-content-sha256"), []
    if announced is not None and not hmac.compare_digest(
        announced.encode(), canonical.payload.encode()
    ):
        differs.append(
            f"X-Content-Sha256 is {_quoted(announced[:64])}, but the SHA-256 of the body, "
            f"{len(request.body)} bytes as they came, is {canonical.payload}."
        )
    return {
        "CanonicalRequest": _bounded(text),
        "StringToSign": _bounded(string_to_sign),
        "Differs": differs,
    }


def message(data: Mapping[str, Any]) -> str:
    """Return the data of a mismatch in sentences for people, on one line."""
    texts = (
        f"The canonical request of this double is {_quoted(data['CanonicalRequest'])}.",
        f"Its string to sign is {_quoted(data['StringToSign'])}.",
        "If yours are the same, the secret key differs, or the signing key made from it.",
    )
    return " ".join((*data["Differs"], *texts))


def _shown_parameter(parameter: str) -> str:
    name = parameter.partition("=")[0]
    return (
        f"{name}={REDACTED}" if is_secret_parameter(unquote(name)) else without_secrets(parameter)
    )


def _shown_header(line: str) -> str:
    name, _, value = line.partition(":")
    hidden = REDACTED if is_secret_parameter(name) else redact(name.lower(), without_secrets(value))
    return f"{name}:{hidden}\n"


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text) - _LONGEST} characters more)"


def _quoted(text: str) -> str:
    """Return a text on one line, with its line ends as ``\\n``, as it stands in most languages."""
    return json.dumps(text, ensure_ascii=False)
