"""The fields of a runtime and of its versions that the actions show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from agentdouble.control_plane import endpoints, runtime_artifacts
from agentdouble.control_plane.endpoints import network_configurations
from agentdouble.control_plane.listing import Listed
from agentdouble.control_plane.runtime_requests import shown_authorizer
from agentdouble.control_plane.wire import stamp
from agentdouble.runtimes import PREFIX
from agentdouble.runtimes.definition import Version
from agentdouble.runtimes.managed import Managed
from agentdouble.settings import MIB

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
