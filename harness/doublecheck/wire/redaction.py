"""Redaction by type: the secrets of a target are taken out of every text about it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from agentdouble.signing import Credentials
from doublecheck.secret import Secret
from doublecheck.target.target import Target
from doublecheck.wire.exchanges import HIDDEN, Exchange, redacted, redacted_text

_SHORTEST = 4  # a shorter one would be found in every other word, and guarded by nobody


def secrets_of(target: Target) -> frozenset[str]:
    """Return the secrets of a target, each as it stands in a text, a URL and a JSON."""
    values = (getattr(target, field.name) for field in dataclasses.fields(target))
    known = {secret for value in values for secret in _secrets(value) if len(secret) >= _SHORTEST}
    return frozenset(form for secret in known for form in _forms(secret))


def hidden(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without those secrets, and without what has the look of one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return redacted_text(text)


def without_secrets(exchanges: Iterable[Exchange], target: Target) -> tuple[Exchange, ...]:
    """Return exchanges as they may be shown: what is secret of the target stands nowhere."""
    secrets = [one.encode() for one in sorted(secrets_of(target), key=len, reverse=True)]
    return tuple(_hidden_in(redacted(one), secrets) for one in exchanges)


def _hidden_in(exchange: Exchange, secrets: Iterable[bytes]) -> Exchange:
    request, body = exchange.request, exchange.body
    content, url = request.content, request.url.encode()
    for secret in secrets:
        content, url = content.replace(secret, b"***"), url.replace(secret, b"***")
        body = body.replace(secret, HIDDEN.encode())
    shown = dataclasses.replace(request, content=content, url=url.decode())
    return dataclasses.replace(exchange, request=shown, body=body)


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
