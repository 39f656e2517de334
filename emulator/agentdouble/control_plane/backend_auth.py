"""The credentials of a service at its backend: a key in a header, or where an HTTP API wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from agentdouble.control_plane.action_errors import invalid, missing
from agentdouble.control_plane.client_auth import ByKeys, check_type
from agentdouble.control_plane.wire import Wire
from agentdouble.errors import NotBuiltError
from agentdouble.mcp_services.authentication import ApiKey, Auth, Bearer

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
