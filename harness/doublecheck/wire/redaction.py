"""Redaction: of texts that look like a secret, and of the secrets of a target.

A text that may be published goes through both: a platform can answer with a key that does not look
like one, and a text can contain a key that is not the target's.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from agentdouble.redaction import REDACTED, is_secret_header, without_secrets
from agentdouble.signing import ALGORITHM, Credentials
from doublecheck.secret import Secret
from doublecheck.target.target import Target

HIDDEN = REDACTED

_SCHEME = re.compile(r"(Bearer|Basic) ", re.I)
_IN_TEXT = (
    re.compile(r"(\b(?:Bearer|Basic) )[\w.~+/=-]+", re.I),
    re.compile(rf"({ALGORITHM} Credential=)[^\s\"\\]+.*?Signature=[0-9a-f]+"),
)
_SHORTEST = 4  # a shorter secret would match parts of many words


def secrets_of(target: Target) -> frozenset[str]:
    """Return the secrets of a target, each as written in a text, a URL and JSON."""
    values = (getattr(target, field.name) for field in dataclasses.fields(target))
    known = {secret for value in values for secret in _secrets(value) if len(secret) >= _SHORTEST}
    return frozenset(form for secret in known for form in _forms(secret))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without these secrets and without anything that looks like a secret."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return redacted_text(text)


def redacted_text(text: str) -> str:
    """Replace the keys, tokens and signatures in a text with ``***``."""
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return without_secrets(text)


def redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Replace the values of secret headers with ``***``."""
    return {name: redacted_header(name, value) for name, value in headers.items()}


def redacted_header(name: str, value: str) -> str:
    """Return the value of a header, or ``***`` if it is secret."""
    if not is_secret_header(name):
        return redacted_text(value)
    scheme = _SCHEME.match(value)
    return (scheme[0] if scheme else "") + HIDDEN


def redacted_bytes(content: bytes) -> bytes:
    """Replace the keys, tokens and signatures in a body with ``***``."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
        return redacted_text(text).encode("latin-1")
    return redacted_text(text).encode()


def _secrets(value: Any) -> Iterator[str]:
    if isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, Credentials):
        yield value.secret_key
        yield value.session_token or ""
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _secrets(one)


def _forms(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret), quote(secret, safe=""))
    yield from (json.dumps(secret)[1:-1], repr(secret)[1:-1])
