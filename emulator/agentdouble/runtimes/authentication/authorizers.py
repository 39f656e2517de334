"""How a runtime's callers prove themselves: by one of its API keys, or by an issuer's token.

``Authorizer`` is either; a definition without one lets everybody in (AUT-01).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from agentdouble.addresses import is_loopback
from agentdouble.errors import AuthorizerError, NotBuiltError

Location = Literal["Header", "Query"]

AUTHORIZATION = "Authorization"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # what a header may be called (RFC 9110)
_SENDABLE = re.compile(r"[!-~]{1,4096}")  # what a header and a query carry as it is


@dataclass(frozen=True)
class ApiKey:
    """A key, and the name that whoever presents it goes by."""

    secret: str = field(repr=False)
    name: str = "default"

    def __post_init__(self) -> None:
        if not _SENDABLE.fullmatch(self.secret):
            raise AuthorizerError(
                "An API key has 1 to 4096 printable ASCII characters without spaces."
            )


@dataclass(frozen=True)
class KeyAuth:
    """One of ``keys``, in the header or the parameter of the query that ``name`` says.

    In the header ``Authorization`` it is ``Bearer <key>``, in any other the bare key.
    """

    keys: tuple[ApiKey, ...]
    location: Location = "Header"
    name: str = AUTHORIZATION

    def __post_init__(self) -> None:
        if not self.keys:
            raise AuthorizerError("A runtime that asks for an API key needs at least one.")
        if not _TOKEN.fullmatch(self.name):
            raise AuthorizerError(f"{self.name[:100]!r} is no name of a header or a parameter.")
        if self.name.lower().replace("_", "-") in _TAKEN:
            raise AuthorizerError(f"The API key cannot be in {self.name!r}: that has its own use.")

    @property
    def bearer(self) -> bool:
        """Whether the key is sent as ``Authorization: Bearer``."""
        return self.location == "Header" and self.name.lower() == AUTHORIZATION.lower()


_TAKEN = frozenset(
    (
        *("host", "connection", "content-length", "content-type", "transfer-encoding", "upgrade"),
        *("user-id", "session-id", "mcp-session-id", "origin"),
    )
)


@dataclass(frozen=True)
class JwtAuth:
    """A token of the issuer whose OpenID Connect discovery document is at ``discovery_url``.

    ``allowed_clients`` are the clients that may have asked for it, ``audience`` whom it may be
    meant for; where one is empty, any is good.
    """

    discovery_url: str
    allowed_clients: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_issuers_url(self.discovery_url, "discovery_url")


Authorizer: TypeAlias = KeyAuth | JwtAuth


def location_of(text: str) -> Location:
    """Return where a key is; raise NotBuiltError for ``Body``, AuthorizerError for nonsense."""
    if text in ("Header", "Query"):
        return text  # type: ignore[return-value]
    if text == "Body":
        raise NotBuiltError("An API key in the request's body")
    raise AuthorizerError(f"An API key is in the Header or in the Query, not in {text[:100]!r}.")


def check_issuers_url(url: str, what: str) -> None:
    """Raise AuthorizerError unless ``url`` is https, or http to this machine."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for what is no port)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise AuthorizerError(
            f"The {what} {url[:200]!r} is neither an https address nor an http one of this machine."
        )
