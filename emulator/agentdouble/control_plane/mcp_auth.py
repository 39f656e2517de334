"""API keys of an MCP service: those of its clients, and the one for its backend."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import Field

from agentdouble.control_plane.public_errors import invalid, missing
from agentdouble.control_plane.wire import Wire
from agentdouble.errors import NotBuiltError
from agentdouble.mcp_services import Key
from agentdouble.mcp_services.backend_credentials import ApiKey, Auth, Basic, Bearer
from agentdouble.mcp_services.keys import make_key

INBOUND = "InboundAuthorizerConfiguration"
OUTBOUND = "OutboundAuthorizerConfiguration"
_NAMES_OF_KEYS = ("apikey", "keyauth")
_BASIC, _BEARER = "basic ", "bearer "


class NamedKey(Wire):
    """An API key; if it has no Key, the platform generates one."""

    Key: str | None = None
    Name: str


class ByKeys(Wire):
    """API keys, and their place in a request."""

    ApiKeys: list[NamedKey] | None = Field(None, min_length=1)
    ApiKeyLocation: str | None = None
    Parameter: str | None = None

    @property
    def location(self) -> str:
        """Where the key is, in lower case."""
        return (self.ApiKeyLocation or "header").lower()


class Ways(Wire):
    """The possible ways to authenticate; all but keys are refused."""

    CustomJwtAuthorizer: Any = None
    IdentityAuthorizer: Any = None
    KeyAuth: ByKeys | None = None


class AuthorizerConfiguration(Wire):
    """How clients authenticate at a service, or the service at its backend."""

    Authorizer: Ways | None = None
    AuthorizerType: str


def _by_keys(name: str, config: AuthorizerConfiguration) -> ByKeys | None:
    """Return the keys of the field ``name``; raise ActionError for anything else."""
    ways = config.Authorizer or Ways()
    for way in ("CustomJwtAuthorizer", "IdentityAuthorizer"):
        if getattr(ways, way) is not None:
            raise NotBuiltError(f"Authorization by {way} in {name}")
    kind, plain = config.AuthorizerType[:100], re.sub(r"[^a-z]", "", config.AuthorizerType.lower())
    if "jwt" in plain or "oauth" in plain or "identity" in plain:
        raise NotBuiltError(f"The AuthorizerType {kind!r} of {name}")
    if plain not in _NAMES_OF_KEYS:
        raise invalid(f"{name}.AuthorizerType", f"{kind!r} is not one of ApiKey, KeyAuth")
    return ways.KeyAuth


def requested_keys(
    service: str, config: AuthorizerConfiguration | None, existing: Iterable[Key] = ()
) -> Sequence[Key] | None:
    """Return the keys that a request sets for clients, or None if it sets none.

    A key without a value keeps the value that the existing key of its name has, or gets a new one.
    Keys are sent in the header Authorization, because section 4.3 requires that header. Raises
    ActionError for unsupported settings, and ServiceKeyError for a key that cannot be sent.
    """
    by = None if config is None else _by_keys(INBOUND, config)
    if by is None:
        return None
    path = f"{INBOUND}.Authorizer.KeyAuth"
    if by.location != "header":
        raise NotBuiltError(f"A key in {by.ApiKeyLocation!r} ({path}.ApiKeyLocation)")
    if (by.Parameter or "authorization").lower() != "authorization":
        raise NotBuiltError(f"A key in the header {by.Parameter!r} ({path}.Parameter)")
    if by.ApiKeys is None:
        return None
    values = {key.name: key.value for key in existing}
    return [make_key(service, key.Name, key.Key or values.get(key.Name)) for key in by.ApiKeys]


def inbound(config: Mapping[str, Any] | None, keys: Sequence[Key]) -> dict[str, Any]:
    """Return the AuthorizerConfiguration of a service, with its keys."""
    by = (config or {}).get("Authorizer", {}).get("KeyAuth", {})
    key_auth = {
        "ApiKeyLocation": by.get("ApiKeyLocation", "Header"),
        "ApiKeys": [{"Key": key.value, "Name": key.name} for key in keys],
        "Parameter": by.get("Parameter", "Authorization"),
    }
    kind = (config or {}).get("AuthorizerType", "ApiKey")
    return {"AuthorizerType": kind, "Authorizer": {"KeyAuth": key_auth}}


def headers(config: AuthorizerConfiguration | None) -> Mapping[str, str]:
    """Return the headers for an MCP backend; raise ActionError if the key is wrong or not built."""
    if config is None:
        return {}
    key, by = _backend_key(config)
    if by.location != "header":
        where = f"A key in {by.ApiKeyLocation!r} for an MCP backend"
        raise NotBuiltError(f"{where} ({OUTBOUND}.Authorizer.KeyAuth.ApiKeyLocation)")
    name = by.Parameter or "Authorization"
    plain = name.lower() == "authorization" and " " not in key
    return {name: f"Bearer {key}" if plain else key}


def authentication(config: AuthorizerConfiguration | None) -> Auth | None:
    """Return the credential for an HTTP API; without a Parameter, the definition places it."""
    if config is None:
        return None
    key, by = _backend_key(config)
    if by.Parameter is None:
        return ApiKey(key)
    has_scheme = key.lower().startswith(_BEARER)
    if by.Parameter.lower() == "authorization" and key.lower().startswith(_BASIC):
        return _basic(key[len(_BASIC) :])
    if by.Parameter.lower() == "authorization" and (has_scheme or " " not in key):
        return Bearer(key[len(_BEARER) :] if has_scheme else key)
    if by.location not in ("header", "query", "cookie"):
        feature = f"A key in {by.ApiKeyLocation!r} for an HTTP API"
        raise NotBuiltError(f"{feature} ({OUTBOUND}.Authorizer.KeyAuth.ApiKeyLocation)")
    location = cast(Literal["header", "query", "cookie"], by.location)
    return ApiKey(key, name=by.Parameter, where=location)


def _basic(encoded: str) -> Basic:
    """Return the user and the password of a header's value; raise ActionError."""
    try:
        user, separator, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        separator = user = password = ""
    if not separator:
        path = f"{OUTBOUND}.Authorizer.KeyAuth.ApiKeys.0.Key"
        raise invalid(path, "after 'Basic ' it needs the base64 of 'user:password'")
    return Basic(user, password)


def _backend_key(config: AuthorizerConfiguration) -> tuple[str, ByKeys]:
    """Return the key to send and its settings."""
    by = _by_keys(OUTBOUND, config)
    path = f"{OUTBOUND}.Authorizer.KeyAuth.ApiKeys"
    if by is None or not by.ApiKeys:
        raise missing(path)
    if len(by.ApiKeys) > 1:
        raise invalid(path, "a backend needs exactly one key")
    if not by.ApiKeys[0].Key:
        raise missing(f"{path}.0.Key")
    return by.ApiKeys[0].Key, by
