"""How a runtime authenticates its callers, and the answers to callers that it does not admit (RFC 6750)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr, field_serializer, model_validator
from pydantic_core import PydanticCustomError
from starlette.responses import JSONResponse, Response

from agentdouble.addresses import is_loopback
from agentdouble.errors import AccessError, AuthorizerError, NotBuiltError
from agentdouble.runtimes.authentication.identity import surface_of

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


_INVALID_REQUEST = -32600  # JSON-RPC


def missing(runtime: str, authorizer: Authorizer) -> AccessError:
    """Return the refusal of a request without credentials."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} asks who calls: send {_wanted(authorizer)}.",
        status=401,
        kind="Unauthorized",
        challenge=_challenge(runtime, authorizer),
    )


def wrong_key(runtime: str, authorizer: KeyAuth) -> AccessError:
    """Return the refusal of a key that does not belong to the runtime."""
    return AccessError(
        runtime,
        f"That is no API key of the runtime {runtime!r}. It asks for {_wanted(authorizer)}.",
        status=401,
        kind="InvalidKey",
        challenge=_challenge(runtime, authorizer, "invalid_token", "No key of this runtime"),
    )


def invalid_token(runtime: str, authorizer: Authorizer, reason: str) -> AccessError:
    """Return the refusal of an invalid token; ``reason`` has nothing of the token."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} does not accept the token: {reason}.",
        status=401,
        kind="InvalidToken",
        challenge=_challenge(runtime, authorizer, "invalid_token", reason),
    )


def not_allowed(runtime: str, authorizer: Authorizer, reason: str) -> AccessError:
    """Return the refusal of a valid token that may not use this runtime."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} is not for the bearer of this token: {reason}.",
        status=403,
        kind="Forbidden",
        challenge=_challenge(runtime, authorizer, "insufficient_scope", reason),
    )


def no_issuer(runtime: str, reason: str) -> AccessError:
    """Return the refusal if the keys of the issuer cannot be fetched."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} cannot check tokens: {reason}. "
        "Try again later, or mend the discovery_url of its authorizer.",
        status=503,
        kind="IssuerUnavailable",
    )


def ambiguous(runtime: str, what: str) -> AccessError:
    """Return the refusal of a request that the application might read in another way."""
    return AccessError(runtime, f"The request is ambiguous: {what}.", status=400, kind="BadRequest")


def too_large(runtime: str, limit: int) -> AccessError:
    """Return the refusal of a body that is too large to be checked."""
    return AccessError(
        runtime,
        f"The body of a run has at most {limit} bytes here.",
        status=413,
        kind="BodyTooLarge",
    )


def no_session(runtime: str) -> AccessError:
    """Return the refusal of another identity's session, as if it did not exist."""
    return AccessError(runtime, "Session not found", status=404, kind="NotFound")


def _wanted(authorizer: Authorizer) -> str:
    if not isinstance(authorizer, KeyAuth):
        return "'Authorization: Bearer <token>' with a token of its issuer"
    if authorizer.bearer:
        return "'Authorization: Bearer <key>'"
    if authorizer.location == "Header":
        return f"'{authorizer.name}: <key>'"
    return f"the parameter {authorizer.name}=<key> in the query"


def _challenge(runtime: str, authorizer: Authorizer, error: str = "", description: str = "") -> str:
    bearer = not isinstance(authorizer, KeyAuth) or authorizer.bearer
    parts = [f'realm="{_quotable(runtime)}"']
    if error:
        parts += [f'error="{error}"', f'error_description="{_quotable(description)}"']
    return f"{'Bearer' if bearer else 'ApiKey'} {', '.join(parts)}"


def _quotable(text: str) -> str:
    return re.sub(r"[^ !#-\[\]-~]", "?", text)


def render(error: AccessError, path: str) -> Response:
    """Return the answer to a refused request for ``path`` of a runtime."""
    headers = None if error.challenge is None else {"WWW-Authenticate": error.challenge}
    return JSONResponse(_body(error, path), error.status, headers)


def _body(error: AccessError, path: str) -> dict[str, Any]:
    surface, message = surface_of(path), str(error)
    if surface == "mcp":
        failure = {"code": _INVALID_REQUEST, "message": message}
        return {"jsonrpc": "2.0", "id": None, "error": failure}
    if surface == "api":
        return {"detail": message}
    return {"error": {"message": message, "type": error.kind}}
