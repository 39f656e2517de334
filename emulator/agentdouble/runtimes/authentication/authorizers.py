"""How a runtime authenticates its callers: by its own API keys, or by an issuer's tokens.

``Authorizer`` is either of the two. A definition without one admits every caller (AUT-01).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr, field_serializer, model_validator
from pydantic_core import PydanticCustomError

from agentdouble.addresses import is_loopback
from agentdouble.errors import AuthorizerError, NotBuiltError

Location = Literal["Header", "Query"]

AUTHORIZATION = "Authorization"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # a header's name (RFC 9110)
_SENDABLE = re.compile(r"[!-~]{1,4096}")  # valid in a header and a query


@dataclass(frozen=True)
class ApiKey:
    """A key, and the name of the caller that presents it."""

    secret: str = field(repr=False)
    name: str = "default"

    def __post_init__(self) -> None:
        if not _SENDABLE.fullmatch(self.secret):
            raise AuthorizerError(
                "An API key has 1 to 4096 printable ASCII characters without spaces."
            )


@dataclass(frozen=True)
class KeyAuth:
    """One of ``keys``, in the header or query parameter with the name ``name``.

    In the header ``Authorization`` it is ``Bearer <key>``, in any other header the bare key.
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

    ``allowed_clients`` are the clients for which the token may be issued, and ``audience`` the
    audiences that it may have. If one is empty, any value is accepted.
    """

    discovery_url: str
    allowed_clients: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_issuers_url(self.discovery_url, "discovery_url")


Authorizer: TypeAlias = KeyAuth | JwtAuth


def location_of(text: str) -> Location:
    """Return where a key is sent; raise AuthorizerError, or NotBuiltError for ``Body``."""
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


class NamedKey(BaseModel):
    """A key with a name; its value is ``secret``, or in the variable ``secret_from``.

    ``secret_from`` is the name of an environment variable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    secret: SecretStr | None = None
    secret_from: str | None = None

    @field_serializer("secret", when_used="json")
    def _kept(self, secret: SecretStr | None) -> str | None:
        """Write the key in plain text, because the table is stored and read again."""
        return None if secret is None else secret.get_secret_value()

    def key(self) -> ApiKey:
        """Return the key; raise AuthorizerError."""
        if (self.secret is None) == (self.secret_from is None):
            raise AuthorizerError("a key with a name has either a secret or a secret_from")
        if self.secret is not None:
            return ApiKey(self.secret.get_secret_value(), self.name)
        return ApiKey(_of_the_environment(self.secret_from or ""), self.name)


class AuthorizerTable(BaseModel):
    """The table of an authorizer: keys, or an issuer's discovery document.

    It has either ``keys`` or ``key_from`` (the name of an environment variable), or a
    ``discovery_url``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[SecretStr | NamedKey, ...] = ()
    key_from: str | None = None
    location: str = "Header"
    name: str = AUTHORIZATION
    discovery_url: str | None = None
    allowed_clients: tuple[str, ...] = ()
    audience: str | tuple[str, ...] = ()

    @field_serializer("keys", when_used="json")
    def _kept(self, keys: tuple[SecretStr | NamedKey, ...]) -> list[Any]:
        """Write the keys in plain text, because the table is stored and read again."""
        return [
            key.get_secret_value()
            if isinstance(key, SecretStr)
            else key.model_dump(mode="json", exclude_unset=True)
            for key in keys
        ]

    @model_validator(mode="after")
    def _sound(self) -> AuthorizerTable:
        try:
            self.authorizer()
        except (AuthorizerError, NotBuiltError) as error:
            reason = str(error).rstrip(".")
            raise PydanticCustomError("runtime", "{reason}", {"reason": reason}) from None
        return self

    def authorizer(self) -> Authorizer:
        """Return the authorizer of the table; raise AuthorizerError, which shows no key."""
        by_key = bool(self.keys) or self.key_from is not None
        if by_key == (self.discovery_url is not None):
            raise AuthorizerError("it has either keys (or key_from) or a discovery_url")
        if self.discovery_url is not None:
            audience = (self.audience,) if isinstance(self.audience, str) else self.audience
            return JwtAuth(self.discovery_url, self.allowed_clients, audience)
        if self.allowed_clients or self.audience:
            raise AuthorizerError("allowed_clients and audience belong to a discovery_url")
        return KeyAuth(self._all_keys(), location_of(self.location), self.name)

    def _all_keys(self) -> tuple[ApiKey, ...]:
        keys = [
            ApiKey(one.get_secret_value(), _default_name(number))
            if isinstance(one, SecretStr)
            else one.key()
            for number, one in enumerate(self.keys, 1)
        ]
        if self.key_from is not None:
            keys.append(ApiKey(_of_the_environment(self.key_from), _default_name(len(keys) + 1)))
        return tuple(keys)


def _default_name(number: int) -> str:
    return "default" if number == 1 else f"key-{number}"


def _of_the_environment(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise AuthorizerError(f"the environment variable {variable[:100]!r} holds no key")
    return value
