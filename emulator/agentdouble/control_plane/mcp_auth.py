"""API keys of an MCP service: those of its clients, and the one for its backend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from agentdouble.control_plane.action_errors import invalid, missing
from agentdouble.control_plane.wire import Wire
from agentdouble.errors import NotBuiltError
from agentdouble.mcp_services import Key
from agentdouble.mcp_services.authentication import ApiKey, Auth, Bearer
from agentdouble.mcp_services.services import make_key

KEYS = "ApiKey"
_NAMES_OF_KEYS = ("apikey", "keyauth")


class NamedKey(Wire):
    """An API key; if it has no Key, the platform generates one."""

    Key: str | None = None
    Name: str


class ByKeys(Wire):
    """API keys, and their place in a request."""

    ApiKeys: list[NamedKey] | None = Field(None, min_length=1)
    ApiKeyLocation: str | None = None
    Parameter: str | None = None


class ByJwt(Wire):
    """Tokens of an identity provider; refused."""

    AllowedClients: list[str] | None = None
    DiscoveryUrl: str


class InboundAuthorizer(Wire):
    """The possible ways to authenticate clients."""

    CustomJwtAuthorizer: ByJwt | None = None
    KeyAuth: ByKeys | None = None


class Inbound(Wire):
    """The AuthorizerConfiguration of the clients that call."""

    Authorizer: InboundAuthorizer | None = None
    AuthorizerType: str


def check_type(name: str, value: str) -> None:
    """Refuse an AuthorizerType that does not stand for API keys."""
    plain = re.sub(r"[^a-z]", "", value.lower())
    if "jwt" in plain or "oauth" in plain or "identity" in plain:
        raise NotBuiltError(f"The AuthorizerType {value[:100]!r} of {name}")
    if plain not in _NAMES_OF_KEYS:
        raise invalid(f"{name}.AuthorizerType", f"{value[:100]!r} is none of ApiKey, KeyAuth")


def asked_keys(
    name: str, service: str, given: Inbound | None, there: Iterable[Key] = ()
) -> Sequence[Key] | None:
    """Return the keys that a request sets, or None if it sets none.

    A key without a value keeps the value that the key of its name has ``there``, or gets a new
    one. Raises ActionError for what is not built, ServiceKeyError for a key that cannot be sent.
    """
    if given is None:
        return None
    by = given.Authorizer or InboundAuthorizer()
    if by.CustomJwtAuthorizer is not None:
        raise NotBuiltError(f"Authorization by a JWT (CustomJwtAuthorizer) in {name}")
    check_type(name, given.AuthorizerType)
    if by.KeyAuth is None:
        return None
    _check_place(f"{name}.Authorizer.KeyAuth", by.KeyAuth)
    values = {key.name: key.value for key in there}
    asked = by.KeyAuth.ApiKeys
    if asked is None:
        return None
    keys = ((one.Name, values.get(one.Name) if one.Key is None else one.Key) for one in asked)
    return [make_key(service, key, value) for key, value in keys]


def _check_place(name: str, given: ByKeys) -> None:
    """Refuse keys outside the header Authorization, because section 4.3 requires that header."""
    if (given.ApiKeyLocation or "header").lower() != "header":
        raise NotBuiltError(f"A key in {given.ApiKeyLocation!r} ({name}.ApiKeyLocation)")
    if (given.Parameter or "authorization").lower() != "authorization":
        raise NotBuiltError(f"A key in the header {given.Parameter!r} ({name}.Parameter)")


class ShownKey(TypedDict):
    """A key, by its name."""

    Key: str
    Name: str


class ShownKeyAuth(TypedDict):
    """The keys of a service, and where requests have them."""

    ApiKeyLocation: str
    ApiKeys: list[ShownKey]
    Parameter: str


class ShownAuth(TypedDict):
    """How callers prove who they are."""

    KeyAuth: ShownKeyAuth


class ShownAuthorizer(TypedDict):
    """The AuthorizerConfiguration of a service."""

    AuthorizerType: str
    Authorizer: ShownAuth


def shown(given: Mapping[str, Any] | None, keys: Sequence[Key]) -> ShownAuthorizer:
    """Return the AuthorizerConfiguration of a service, with its keys."""
    by = (given or {}).get("Authorizer", {}).get("KeyAuth", {})
    key_auth: ShownKeyAuth = {
        "ApiKeyLocation": by.get("ApiKeyLocation", "Header"),
        "ApiKeys": [{"Key": key.value, "Name": key.name} for key in keys],
        "Parameter": by.get("Parameter", "Authorization"),
    }
    kind = (given or {}).get("AuthorizerType", KEYS)
    return {"AuthorizerType": kind, "Authorizer": {"KeyAuth": key_auth}}


NAME = "OutboundAuthorizerConfiguration"
_BEARER = "bearer "


class ByIdentity(Wire):
    """A credential that the platform would store; refused."""

    CredentialProviderName: str | None = None
    ProviderType: str | None = None


class OutboundAuthorizer(Wire):
    """The possible kinds of credentials."""

    IdentityAuthorizer: ByIdentity | None = None
    KeyAuth: ByKeys | None = None


class Outbound(Wire):
    """The AuthorizerConfiguration of the backend that a service calls."""

    Authorizer: OutboundAuthorizer | None = None
    AuthorizerType: str


def headers(given: Outbound | None) -> Mapping[str, str]:
    """Return the headers for an MCP backend; raise ActionError if the key is wrong or not built."""
    found = _key(given)
    if found is None:
        return {}
    key, by = found
    if (by.ApiKeyLocation or "header").lower() != "header":
        where = f"A key in {by.ApiKeyLocation!r} for an MCP backend"
        raise NotBuiltError(f"{where} ({NAME}.Authorizer.KeyAuth.ApiKeyLocation)")
    name = by.Parameter or "Authorization"
    plain = name.lower() == "authorization" and " " not in key
    return {name: f"Bearer {key}" if plain else key}


def authentication(given: Outbound | None) -> Auth | None:
    """Return the credential for an HTTP API; without a Parameter, the definition places it."""
    found = _key(given)
    if found is None:
        return None
    key, by = found
    if by.Parameter is None:
        return ApiKey(key)
    if by.Parameter.lower() == "authorization" and _is_token(key):
        return Bearer(key[len(_BEARER) :] if key.lower().startswith(_BEARER) else key)
    where = (by.ApiKeyLocation or "header").lower()
    if where not in ("header", "query", "cookie"):
        what = f"A key in {by.ApiKeyLocation!r} for an HTTP API"
        raise NotBuiltError(f"{what} ({NAME}.Authorizer.KeyAuth.ApiKeyLocation)")
    place = cast(Literal["header", "query", "cookie"], where)
    return ApiKey(key, name=by.Parameter, where=place)


def _key(given: Outbound | None) -> tuple[str, ByKeys] | None:
    """Return the key to send and its settings, or None if there is none."""
    if given is None:
        return None
    by = given.Authorizer or OutboundAuthorizer()
    if by.IdentityAuthorizer is not None:
        raise NotBuiltError(f"Authorization by IdentityAuthorizer in {NAME}")
    check_type(NAME, given.AuthorizerType)
    path = f"{NAME}.Authorizer.KeyAuth"
    if by.KeyAuth is None or not by.KeyAuth.ApiKeys:
        raise missing(f"{path}.ApiKeys")
    first, *others = by.KeyAuth.ApiKeys
    if others:
        raise invalid(f"{path}.ApiKeys", "a backend is shown one key")
    if not first.Key:
        raise missing(f"{path}.ApiKeys.0.Key")
    return first.Key, by.KeyAuth


def _is_token(key: str) -> bool:
    return " " not in key or key.lower().startswith(_BEARER)
