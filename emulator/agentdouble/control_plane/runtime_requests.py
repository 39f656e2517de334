"""The requests of the actions on runtimes, with the field types of the platform's client.

This module also converts the authorizer of a request, and the one that is shown.
"""

from __future__ import annotations

import secrets
from typing import Any

from pydantic import Field

from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.endpoints import Network
from agentdouble.control_plane.listing import Paging
from agentdouble.control_plane.tool_requests import Authorizer, ByKey, ByToken, Tls
from agentdouble.control_plane.wire import EnvList, Wire
from agentdouble.runtimes.authentication import Authorizer as Settled
from agentdouble.runtimes.authentication import KeyAuth, location_of


class Tag(Wire):
    """A tag."""

    Key: str
    Value: str | None = None


class RuntimeFields(Wire):
    """The common fields of CreateRuntime and UpdateRuntime."""

    ApmplusEnable: bool | None = None
    CpuMilli: int | None = Field(None, ge=1)
    Description: str | None = None
    KnowledgeId: str | None = None
    MCPToolsetId: str | None = None
    MaxConcurrency: int | None = Field(None, ge=1)
    MaxInstance: int | None = Field(None, ge=1)
    MemoryId: str | None = None
    MemoryMb: int | None = Field(None, ge=1)
    MinInstance: int | None = Field(None, ge=0)
    ModelAgentName: str | None = None
    ToolId: str | None = None
    Envs: EnvList | None = None
    Tags: list[Tag] | None = None


class CreateRuntime(RuntimeFields):
    """The body of CreateRuntime."""

    Name: str
    RoleName: str
    ArtifactType: str
    ArtifactUrl: str
    ClientToken: str | None = Field(None, min_length=1, max_length=128)
    GatewayInstanceId: str | None = None
    GatewayMode: str | None = None
    ProjectName: str | None = None
    AuthorizerConfiguration: Authorizer | None = None
    NetworkConfiguration: Network | None = None
    TlsConfiguration: Tls | None = None


class UpdateRuntime(RuntimeFields):
    """The body of UpdateRuntime."""

    RuntimeId: str
    ArtifactType: str | None = None
    ArtifactUrl: str | None = None
    ReleaseEnable: bool | None = None


class OneRuntime(Wire):
    """The body of ListRuntimeInstances."""

    RuntimeId: str


class OneVersion(Wire):
    """The body of GetRuntimeVersion and of ReleaseRuntime, which releases the newest by default."""

    RuntimeId: str
    VersionNumber: int | None = Field(None, ge=1)


class InstanceLogs(Wire):
    """The body of GetRuntimeInstanceLogs; ``Limit`` counts lines."""

    RuntimeId: str
    InstanceName: str
    Limit: int | None = Field(None, ge=1, le=10_000)


class ListVersions(Paging):
    """The body of ListRuntimeVersions."""

    RuntimeId: str


def asked_authorizer(given: Authorizer | None) -> dict[str, Any]:
    """Return the authorizer of a request, in the form of a runtime's table.

    A runtime always gets one (AUT-02): if the request has none, the platform generates a key, which
    GetRuntime shows. Raises ActionError.
    """
    by = given or Authorizer()
    if by.CustomJwtAuthorizer is None:
        return _by_key(by.KeyAuth or ByKey())
    if by.KeyAuth is not None:
        raise invalid("AuthorizerConfiguration", "it has either a KeyAuth or a CustomJwtAuthorizer")
    return _by_token(by.CustomJwtAuthorizer)


def shown_authorizer(authorizer: Settled | None) -> dict[str, Any]:
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
    location = location_of((given.ApiKeyLocation or "Header").capitalize())
    # ApiKeyName names the key, not a header, because real clients send Authorization: Bearer.
    # A runtime that the settings declare admits every caller unless it has an authorizer.
    key = {
        "name": given.ApiKeyName or "default",
        "secret": given.ApiKey or secrets.token_urlsafe(32),
    }
    return {"keys": [key], "location": location}


def _by_token(given: ByToken) -> dict[str, Any]:
    return {"discovery_url": given.DiscoveryUrl, "allowed_clients": given.AllowedClients or []}
