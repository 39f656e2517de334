"""Requests about runtimes, and runtimes as answers show them."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from agentdouble.control_plane import endpoints, runtime_artifacts
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.endpoints import Network, network_configurations
from agentdouble.control_plane.listing import Listed, Paging
from agentdouble.control_plane.tool_requests import Authorizer, ByKey, ByToken, Tls
from agentdouble.control_plane.wire import EnvList, Wire, stamp
from agentdouble.runtimes import PREFIX
from agentdouble.runtimes.authentication import Authorizer as Settled
from agentdouble.runtimes.authentication import KeyAuth, location_of
from agentdouble.runtimes.definition import Version
from agentdouble.runtimes.registry import Managed
from agentdouble.settings import MIB


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


_NOT_OF_A_VERSION = frozenset(
    (
        *("CurrentVersionNumber", "FailedLogFileUrl", "KnowledgeId", "MCPToolsetId", "MaxInstance"),
        *("MemoryId", "MinInstance", "NetworkConfigurations", "StatusMessage", "TlsConfiguration"),
        "ToolId",
    )
)
_NOT_OF_A_LISTED_VERSION = frozenset(
    ("Endpoint", "MaxConcurrency", "ModelAgentName", "Name", "ProjectName", "Tags")
)


def whole(found: Managed) -> dict[str, Any]:
    """Return the fields of GetRuntime: the version in force, and the runtime's own state."""
    runtime = found.runtime
    status = runtime.status
    logs = f"{endpoints.base_url()}/_emulator/runtimes/{found.name}/logs"
    return {
        **_said(found, runtime.version),
        "CreatedAt": stamp(found.created_at),
        "UpdatedAt": stamp(found.updated_at),
        "CurrentVersionNumber": runtime.version.number,
        "Status": status.word,
        "StatusMessage": status.message,
        "FailedLogFileUrl": logs if status.word == "Error" else "",
    }


def version(found: Managed, one: Version) -> dict[str, Any]:
    """Return the fields of GetRuntimeVersion; a version that does not serve is UnReleased."""
    status = found.runtime.status.word
    serves = found.runtime.version.number == one.number
    return {
        **_without(_said(found, one), _NOT_OF_A_VERSION),
        "VersionNumber": one.number,
        "CreatedAt": stamp(one.created_at),
        "UpdatedAt": stamp(one.created_at),
        "Endpoint": _endpoint(found),
        "Status": _status_in_force(status) if serves else "UnReleased",
    }


def listed_version(found: Managed, one: Version) -> Listed:
    """Return a version as ListRuntimeVersions shows it."""
    item = _without(version(found, one), _NOT_OF_A_LISTED_VERSION)
    return Listed(f"{one.number:09}", {"CreatedAt": one.created_at}, item)


def _status_in_force(status: str) -> str:
    return "Ready" if status == "UnReleased" else status  # only a newer version is not released


def _said(found: Managed, one: Version) -> dict[str, Any]:
    """Return the fields of a version, with effective values for all fields that have an effect."""
    given = dict(found.said[one.number].fields)
    network = given.pop("NetworkConfiguration", {})
    definition = one.definition
    program, scaling = definition.program, definition.scaling
    authorizer = shown_authorizer(definition.authorizer)
    sometimes = {
        "Command": shlex.join(program.command) or None,
        "MemoryMb": definition.memory_limit and definition.memory_limit // MIB,
        "AuthorizerConfiguration": authorizer or None,
    }
    return {
        "Description": "",
        "ProjectName": "default",
        "RoleName": "",
        "Tags": [],
        **given,
        **{name: value for name, value in sometimes.items() if value is not None},
        "RuntimeId": found.id,
        "Name": found.name,
        "ArtifactType": runtime_artifacts.FILE,
        "ArtifactUrl": runtime_artifacts.url_of(definition),
        "Envs": [{"Key": name, "Value": value} for name, value in definition.environment.items()],
        "MinInstance": scaling.min_instances,
        "MaxInstance": scaling.max_instances,
        "MaxConcurrency": scaling.max_concurrency,
        "NetworkConfigurations": network_configurations(network, f"{PREFIX}{found.name}"),
    }


def _endpoint(found: Managed) -> str:
    return f"{endpoints.base_url()}{PREFIX}{found.name}"


def _without(shown: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name not in names}
