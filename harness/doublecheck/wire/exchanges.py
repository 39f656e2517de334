"""An exchange: a request and its answer, in full and redacted, and its curl command."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from agentdouble.core.redaction import REDACTED
from agentdouble.core.redaction import redact as redact_header
from agentdouble.core.redaction import without_secrets as without_secrets_in_text
from agentdouble.core.secret_names import is_secret_header
from agentdouble.core.signing import ALGORITHM, Credentials
from doublecheck.core.notebook_repr import Secret, Shown
from doublecheck.target.facts import variable
from doublecheck.target.target import Target
from doublecheck.values.double import JournalEntry
from doublecheck.wire.calls import Request

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
    secrets = {secret for value in values for secret in _secrets(value) if len(secret) >= _SHORTEST}
    return frozenset(form for secret in secrets for form in _forms(secret))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without these secrets and without anything that looks like a secret."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return redacted_text(text)


def redacted_text(text: str) -> str:
    """Replace the keys, tokens and signatures in a text with ``***``."""
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return without_secrets_in_text(text)


def redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Replace the values of secret headers with ``***``."""
    return {name: redacted_header(name, value) for name, value in headers.items()}


def redacted_header(name: str, value: str) -> str:
    """Return the value of a header, or ``***`` if it is secret."""
    if not is_secret_header(name):
        return redacted_text(redact_header(name.lower(), value))
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
        for item in value.values():
            yield from _secrets(item)


def _forms(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret), quote(secret, safe=""))
    yield from (json.dumps(secret)[1:-1], repr(secret)[1:-1])


@dataclass(frozen=True, repr=False)
class Exchange(Shown, drawn_by="notebook.display.double.exchange"):
    """A request and its answer.

    ``status`` is None if there is no answer, and ``error`` has the reason; both are None while the
    exchange is in progress. ``body`` is the part of the answer that was read. Only the first 64 KiB
    of a body are stored: ``request_cut`` and ``body_cut`` say whether it was longer. ``repeated``:
    the answer was lost on the way, and the request was sent again.
    """

    request: Request
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    error: str | None = None
    elapsed_s: float = 0.0
    request_cut: bool = False
    body_cut: bool = False
    repeated: bool = False

    def __repr__(self) -> str:
        came = self.error or self.status or "under way"
        request = f"{self.request.method} {redacted_text(self.request.url)}"
        return f"<Exchange {request} {came} {self.elapsed_s * 1000:.0f} ms>"


def of_entry(entry: JournalEntry) -> Exchange:
    """Return the exchange that an entry of a double's journal describes."""
    content, body = entry.request_body.encode(), entry.response_body.encode()
    request = Request(entry.method, entry.url, entry.request_headers, content)
    elapsed_s = (entry.duration_ms or 0) / 1000
    return Exchange(request, entry.status, entry.response_headers, body, elapsed_s=elapsed_s)


def redacted(exchange: Exchange) -> Exchange:
    """Return an exchange whose keys, tokens and signatures are ``***``."""
    request = exchange.request
    safe = dataclasses.replace(
        request,
        url=redacted_text(request.url),
        headers=redacted_headers(request.headers),
        content=redacted_bytes(request.content),
    )
    return dataclasses.replace(
        exchange,
        request=safe,
        headers=redacted_headers(exchange.headers),
        body=redacted_bytes(exchange.body),
        error=None if exchange.error is None else redacted_text(exchange.error),
    )


def without_secrets(exchanges: Iterable[Exchange], target: Target) -> tuple[Exchange, ...]:
    """Return exchanges that may be published: redacted, and without the target's secrets."""
    secrets = [secret.encode() for secret in sorted(secrets_of(target), key=len, reverse=True)]
    return tuple(_without(redacted(exchange), secrets) for exchange in exchanges)


def _without(exchange: Exchange, secrets: Iterable[bytes]) -> Exchange:
    request = exchange.request
    safe = dataclasses.replace(
        request,
        url=_hide(request.url.encode(), secrets).decode(),
        content=_hide(request.content, secrets),
    )
    return dataclasses.replace(exchange, request=safe, body=_hide(exchange.body, secrets))


def _hide(content: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in secrets:
        content = content.replace(secret, HIDDEN.encode())
    return content


def curl(exchange: Exchange) -> str:
    """Return a shell command that sends the request again, without its secrets.

    The API key is read from the environment. For a request that a shell cannot send again, for
    example a signed one, the result is a comment with the reason.
    """
    request = exchange.request
    obstacle = _obstacle(exchange)
    if obstacle:
        return f"# {request.method} {redacted_text(request.url)}: {obstacle}"
    words = ["curl", "-sS"]
    if request.method == "HEAD":
        words.append("-I")
    elif request.method != ("POST" if request.content else "GET"):
        words += ["-X", request.method]
    words.append(shlex.quote(redacted_text(request.url)))
    for name, value in request.headers.items():
        words += ["-H", _header(name, value)]
    if request.content and not _value(request.headers, "content-type"):
        words += ["-H", "Content-Type:"]  # otherwise curl would add one
    if request.content:
        words += ["--data-raw", shlex.quote(redacted_text(request.content.decode()))]
    return " ".join(words)


def _obstacle(exchange: Exchange) -> str | None:
    request = exchange.request
    authorization = _value(request.headers, "authorization")
    if authorization.startswith(ALGORITHM):
        return (
            "it is signed with the target's access key and secret key in a scheme that curl "
            "does not know; its signature is valid for minutes"
        )
    if redacted_text(request.url) != request.url:
        return "its URL has a session token, which expires with the session"
    if exchange.request_cut:
        return f"its body is longer than the {len(request.content)} bytes that were stored"
    with suppress(UnicodeDecodeError):
        if "\0" not in request.content.decode():
            return None
    return "its body is not text"


def _header(name: str, value: str) -> str:
    if value == "":
        return shlex.quote(f"{name};")
    if name.lower() == "authorization" and value.startswith("Bearer "):
        held_in = variable("api_key")
        return f'"{name}: Bearer ${held_in}"'
    return shlex.quote(f"{name}: {redacted_header(name, value)}")


def _value(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "")
