"""How the callers of a runtime prove themselves: as requests ask for it, and as it is shown."""

from __future__ import annotations

import secrets
from typing import Any

from agentdouble.control_plane.codes import as_action_errors
from agentdouble.control_plane.reading import invalid
from agentdouble.control_plane.tool_requests import Authorizer, ByKey, ByToken
from agentdouble.runtimes.authentication import Authorizer as Settled
from agentdouble.runtimes.authentication import KeyAuth, location_of

_FIELD = "AuthorizerConfiguration"


def asked(given: Authorizer | None) -> dict[str, Any]:
    """Return the authorizer that a request asks for, as a runtime's table has it.

    A runtime is never made without one (AUT-02): where nothing is said, the platform makes a key,
    which GetRuntime shows. Raises ActionError.
    """
    by = given or Authorizer()
    if by.CustomJwtAuthorizer is None:
        return _by_key(by.KeyAuth or ByKey())
    if by.KeyAuth is not None:
        raise invalid(_FIELD, "it has either a KeyAuth or a CustomJwtAuthorizer")
    return _by_token(by.CustomJwtAuthorizer)


def shown(authorizer: Settled | None) -> dict[str, Any]:
    """Return the AuthorizerConfiguration of a runtime, with its first key."""
    if authorizer is None:
        return {}
    if isinstance(authorizer, KeyAuth):
        first = authorizer.keys[0]
        key = {"ApiKey": first.secret, "ApiKeyName": first.name}
        return {"KeyAuth": {**key, "ApiKeyLocation": authorizer.location}}
    token = {
        "DiscoveryUrl": authorizer.discovery_url,
        "AllowedClients": list(authorizer.allowed_clients),
    }
    return {"CustomJwtAuthorizer": token}


def _by_key(given: ByKey) -> dict[str, Any]:
    with as_action_errors():
        location = location_of((given.ApiKeyLocation or "Header").capitalize())
    key = {
        "name": given.ApiKeyName or "default",
        "secret": given.ApiKey or secrets.token_urlsafe(32),
    }
    return {"keys": [key], "location": location}


def _by_token(given: ByToken) -> dict[str, Any]:
    return {"discovery_url": given.DiscoveryUrl, "allowed_clients": given.AllowedClients or []}
