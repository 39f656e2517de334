"""Requests about runtimes, and the representation of runtimes in answers."""

from __future__ import annotations

import secrets
import shlex
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from agentdouble.control_plane import addresses, public_errors, runtime_artifacts, wire
from agentdouble.control_plane.listing import Paging
from agentdouble.errors import ActionError, NotBuiltError
from agentdouble.runtimes import PREFIX
from agentdouble.runtimes.definition import Definition, Version
from agentdouble.runtimes.registry import Managed
from agentdouble.settings import MIB

DESCRIPTION_LIMIT = 255  # bytes of UTF-8

_NAME = "^[A-Za-z0-9_-]{4,64}$"  # those of the settings may be shorter, and have dots
_STATUS = {"starting": "Starting", "ready": "Ready", "draining": "Terminating"}

_NOT_OF_A_VERSION = (
    *("KnowledgeId", "MCPToolsetId", "MaxInstance", "MemoryId", "MinInstance"),
    *("NetworkConfigurations", "TlsConfiguration", "ToolId"),
)
_NOT_OF_A_LISTED_VERSION = (
    *("Endpoint", "MaxConcurrency", "ModelAgentName", "Name", "ProjectName", "Tags"),
)


class RuntimeFields(wire.Wire):
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
    Envs: wire.EnvList | None = None
    Tags: list[wire.Tag] | None = None


class CreateRuntime(RuntimeFields):
    """The body of CreateRuntime."""

    Name: str = Field(pattern=_NAME)
    RoleName: str
    ArtifactType: str
    ArtifactUrl: str
    ClientToken: str | None = Field(None, min_length=1, max_length=128)
    GatewayInstanceId: str | None = None
    GatewayMode: str | None = None
    ProjectName: str | None = None
    AuthorizerConfiguration: wire.Authorizer | None = None
    NetworkConfiguration: addresses.Network | None = None
    TlsConfiguration: wire.Tls | None = None


class UpdateRuntime(RuntimeFields):
    """The body of UpdateRuntime."""

    RuntimeId: str
    ArtifactType: str | None = None
    ArtifactUrl: str | None = None
    ReleaseEnable: bool | None = None


def check_description(request: RuntimeFields) -> None:
    """Refuse a Description that is too long; raise ActionError."""
    size = len((request.Description or "").encode())
    if size > DESCRIPTION_LIMIT:
        raise ActionError(
            "InvalidDescription.Malformed",
            f"The Description has {size} bytes of UTF-8; the limit is {DESCRIPTION_LIMIT}.",
        )


class OneRuntime(wire.Wire):
    """The body of ListRuntimeInstances."""

    RuntimeId: str


class OneVersion(OneRuntime):
    """The body of GetRuntimeVersion and of ReleaseRuntime, which releases the newest by default."""

    VersionNumber: int | None = Field(None, ge=1)


class InstanceLogs(OneRuntime):
    """The body of GetRuntimeInstanceLogs; ``Limit`` counts lines."""

    InstanceName: str
    Limit: int = Field(1000, ge=1, le=10_000)


class ListVersions(Paging):
    """The body of ListRuntimeVersions."""

    RuntimeId: str


class ShownRuntime(CreateRuntime):
    """A runtime: the fields with which it was created, and its state."""

    RuntimeId: str
    Status: str
    StatusMessage: str | None = None
    CurrentVersionNumber: int
    FailedLogFileUrl: str | None = None
    Command: str | None = None
    CreatedAt: str
    UpdatedAt: str
    NetworkConfigurations: list[addresses.NetworkConfiguration]


class ShownVersion(CreateRuntime):
    """A version of a runtime; lists leave out some of its fields."""

    RuntimeId: str
    Name: str | None = None  # type: ignore[assignment]
    VersionNumber: int
    Status: str
    Endpoint: str | None = None
    Command: str | None = None
    CreatedAt: str
    UpdatedAt: str


class ShownInstance(TypedDict):
    """An instance of a runtime."""

    InstanceName: str
    AliasName: str
    InstanceStatus: str
    CreateTime: str
    RevisionNumber: int
    RuntimeId: str


def requested_authorizer(authorizer: wire.Authorizer | None) -> dict[str, Any]:
    """Return the authorizer of a request, in the form of a runtime's table.

    A runtime always gets one (AUT-02): if the request has none, the platform generates a key, which
    GetRuntime shows. ApiKeyName names the key, not a header, because real clients send
    Authorization: Bearer. Raises ActionError.
    """
    by = authorizer or wire.Authorizer()
    if by.CustomJwtAuthorizer is not None:
        if by.KeyAuth is not None:
            reason = "it must have either a KeyAuth or a CustomJwtAuthorizer"
            raise public_errors.invalid("AuthorizerConfiguration", reason)
        token = by.CustomJwtAuthorizer
        return {
            "discovery_url": token.DiscoveryUrl,
            "allowed_clients": token.AllowedClients or [],
        }
    key = by.KeyAuth or wire.ByKey()
    location = (key.ApiKeyLocation or "Header").capitalize()
    if location == "Body":
        raise NotBuiltError("An API key in the request's body")
    secret = key.ApiKey or secrets.token_urlsafe(32)
    return {"keys": [{"name": key.ApiKeyName or "default", "secret": secret}], "location": location}


def _shown_authorizer(definition: Definition) -> dict[str, Any] | None:
    """Return the AuthorizerConfiguration of a runtime, with its first key."""
    authorizer = definition.authorizer
    if authorizer is None:
        return None
    if authorizer.keys:
        first = authorizer.keys[0]
        key = {"ApiKey": first.secret, "ApiKeyName": first.name}
        return {"KeyAuth": {**key, "ApiKeyLocation": authorizer.location}}
    token = {
        "DiscoveryUrl": authorizer.discovery_url,
        "AllowedClients": list(authorizer.allowed_clients),
    }
    return {"CustomJwtAuthorizer": token}


def details(managed: Managed) -> dict[str, Any]:
    """Return the fields of GetRuntime: the version in force, and the runtime's own state."""
    runtime, base = managed.runtime, addresses.base_url()
    status = runtime.status
    logs = f"{base}/_emulator/runtimes/{managed.name}/logs"
    return {
        **_fields_of(managed, runtime.version),
        "CreatedAt": wire.stamp(managed.created_at),
        "UpdatedAt": wire.stamp(managed.updated_at),
        "CurrentVersionNumber": runtime.version.number,
        "Status": status.word,
        "StatusMessage": status.message,
        "FailedLogFileUrl": logs if status.word == "Error" else "",
    }


def shown_version(managed: Managed, version: Version, *, listed: bool = False) -> dict[str, Any]:
    """Return the fields of GetRuntimeVersion; a version that does not serve is UnReleased."""
    runtime = managed.runtime
    status = runtime.status.word if version is runtime.version else "UnReleased"
    if version is runtime.version and status == "UnReleased":
        status = "Ready"  # only a newer version is not released
    fields = {
        **_fields_of(managed, version),
        "VersionNumber": version.number,
        "CreatedAt": wire.stamp(version.created_at),
        "UpdatedAt": wire.stamp(version.created_at),
        "Endpoint": f"{addresses.base_url()}{PREFIX}{managed.name}",
        "Status": status,
    }
    for name in (*_NOT_OF_A_VERSION, *(_NOT_OF_A_LISTED_VERSION if listed else ())):
        fields.pop(name, None)
    return fields


def shown_instances(managed: Managed) -> list[ShownInstance]:
    """Return the living instances of a runtime."""
    return [
        {
            "InstanceName": instance.name,
            "AliasName": instance.name,
            "InstanceStatus": _STATUS.get(instance.state, "Terminated"),
            "CreateTime": wire.stamp(instance.created_at),
            "RevisionNumber": instance.version,
            "RuntimeId": managed.id,
        }
        for instance in managed.runtime.instances
    ]


def _fields_of(managed: Managed, version: Version) -> dict[str, Any]:
    """Return the fields of a version, with effective values for all fields that have an effect."""
    fields, definition = dict(version.fields), version.definition
    network = fields.pop("NetworkConfiguration", {})
    sometimes = {
        "Command": shlex.join(definition.command) or None,
        "MemoryMb": definition.memory_limit and definition.memory_limit // MIB,
        "AuthorizerConfiguration": _shown_authorizer(definition),
    }
    return {
        "Description": "",
        "ProjectName": "default",
        "RoleName": "",
        "Tags": [],
        **fields,
        **{name: value for name, value in sometimes.items() if value is not None},
        "RuntimeId": managed.id,
        "Name": managed.name,
        "ArtifactType": runtime_artifacts.FILE,
        "ArtifactUrl": runtime_artifacts.url_of(definition),
        "Envs": [{"Key": name, "Value": value} for name, value in definition.environment.items()],
        "MinInstance": definition.min_instances,
        "MaxInstance": definition.max_instances,
        "MaxConcurrency": definition.max_concurrency,
        "NetworkConfigurations": addresses.network_configurations(
            network, f"{PREFIX}{managed.name}"
        ),
    }
