"""An exchange: a request and its answer, its redacted form, and its line of curl."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentdouble.signing import ALGORITHM
from doublecheck.notebook_repr import Shown
from doublecheck.target.facts import variable
from doublecheck.wire.calls import Request

HIDDEN = "***"

_NAMES = "authorization|cookie|set-cookie|x-api-key|x-security-token|proxy-authorization"
_SECRET_HEADER = re.compile(rf"(?:{_NAMES})|.*(?:secret|token|password|api[-_]?key).*", re.I)
_SCHEME = re.compile(r"(Bearer|Basic) ", re.I)
_IN_TEXT = (
    # the token of a session's Endpoint, also where its & is an escape of JSON
    re.compile(r"([?&]Authorization=|\\u0026Authorization=)[^&#\s\"'\\]+", re.I),
    re.compile(r"(\b(?:Bearer|Basic) )[\w.~+/=-]+", re.I),
    re.compile(
        r"(\\?\"[\w-]*(?:secret|token|password|api[_-]?key|access[_-]?key)[\w-]*\\?\"\s*:\s*\\?\")"
        r"[^\"\\]+",
        re.I,
    ),
    re.compile(rf"({ALGORITHM} Credential=)[^\s\"\\]+.*?Signature=[0-9a-f]+"),
)
_PLAIN = re.compile(r"[\n\t\x20-\x7e\u00a0-\U0010ffff]*")


@dataclass(frozen=True, repr=False)
class Exchange(Shown, drawn_by="notebook.display.exchanges.exchange"):
    """A request and its answer.

    ``status`` is None where no answer came, and ``error`` says why; both are None while it is
    under way. ``body`` is what was read of the answer. Of bodies the first 64 KiB are kept:
    ``request_cut`` and ``body_cut`` tell where that is not all.
    """

    request: Request
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    error: str | None = None
    elapsed_s: float = 0.0
    request_cut: bool = False
    body_cut: bool = False

    def __repr__(self) -> str:
        came = self.error or self.status or "under way"
        asked = f"{self.request.method} {redacted_text(self.request.url)}"
        return f"<Exchange {asked} {came} {self.elapsed_s * 1000:.0f} ms>"


def redacted(exchange: Exchange) -> Exchange:
    """Return an exchange whose keys, tokens and signatures are ``***``."""
    request = exchange.request
    shown = dataclasses.replace(
        request,
        url=redacted_text(request.url),
        headers=_redacted_headers(request.headers),
        content=_redacted_bytes(request.content),
    )
    return dataclasses.replace(
        exchange,
        request=shown,
        headers=_redacted_headers(exchange.headers),
        body=_redacted_bytes(exchange.body),
        error=None if exchange.error is None else redacted_text(exchange.error),
    )


def redacted_text(text: str) -> str:
    """Return a text whose keys, tokens and signatures are ``***``."""
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def curl(exchange: Exchange) -> str:
    """Return the line for a shell that sends the request again, without its secrets.

    The API key is read from the environment. A request that a shell cannot send again, a signed
    one say, becomes a comment that says why.
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
        words += ["-H", "Content-Type:"]  # or curl would make one up
    return _with_content(" ".join(words), request.content)


def _obstacle(exchange: Exchange) -> str | None:
    request = exchange.request
    authorization = _value(request.headers, "authorization")
    if authorization.startswith(ALGORITHM):
        return (
            "it is signed with the target's access key and secret key in a scheme that curl does "
            "not know; its signature holds for minutes"
        )
    if redacted_text(request.url) != request.url:
        return "its URL has the token of a session, which ends with the session"
    if exchange.request_cut:
        return f"its body is longer than the {len(request.content)} bytes that were kept"
    return None


def _header(name: str, value: str) -> str:
    if value == "":
        return shlex.quote(f"{name};")
    if name.lower() == "authorization" and value.startswith("Bearer "):
        held_in = variable("api_key")
        return f'"{name}: Bearer ${held_in}"'
    return shlex.quote(f"{name}: {_redacted_value(name, value)}")


def _with_content(line: str, content: bytes) -> str:
    if not content:
        return line
    text = content.decode(errors="replace")
    if _PLAIN.fullmatch(text) and text.encode() == content:
        return f"{line} --data-raw {shlex.quote(redacted_text(text))}"
    octets = "".join(f"\\{octet:03o}" for octet in content)
    return f"printf '{octets}' | {line} --data-binary @-"


def _redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: _redacted_value(name, value) for name, value in headers.items()}


def _redacted_value(name: str, value: str) -> str:
    if not _SECRET_HEADER.fullmatch(name):
        return redacted_text(value)
    scheme = _SCHEME.match(value)
    return (scheme[0] if scheme else "") + HIDDEN


def _redacted_bytes(content: bytes) -> bytes:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
        return redacted_text(text).encode("latin-1")
    return redacted_text(text).encode()


def _value(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "")
