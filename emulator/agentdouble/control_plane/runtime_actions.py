"""The actions on runtimes, their versions, their instances and their logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agentdouble.control_plane import runtime_artifacts, runtime_requests
from agentdouble.control_plane.action_methods import action
from agentdouble.control_plane.listing import Listed, ListMade, page
from agentdouble.control_plane.public_errors import invalid
from agentdouble.control_plane.runtime_artifacts import ArtifactSources
from agentdouble.control_plane.tool_actions import ResourceActions
from agentdouble.control_plane.wire import variables
from agentdouble.errors import SettingsError, UnknownInstanceError
from agentdouble.journal.entries import note_unread
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.registry import Managed, RuntimeRegistry
from agentdouble.settings import MIB
from agentdouble.state import digest

_SCALING = {
    "MinInstance": "min_instances",
    "MaxInstance": "max_instances",
    "MaxConcurrency": "max_concurrency",
}
_FIELD_OF = {
    "name": "Name",
    "environment": "Envs",
    "authorizer": "AuthorizerConfiguration",
    "memory_limit": "MemoryMb",
    **{key: field for field, key in _SCALING.items()},
}
_ACTED_ON = {
    *("RuntimeId", "Name", "ClientToken", "ReleaseEnable", "ArtifactType", "ArtifactUrl"),
    *("Envs", "AuthorizerConfiguration", "MemoryMb", *_SCALING),
}
_SHOWN = {"Description", "ProjectName", "Tags"}


class RuntimeActions(
    ResourceActions[Managed, runtime_requests.CreateRuntime, runtime_requests.UpdateRuntime]
):
    """The actions on runtimes; each answers at ``/runtimes/<Name>``, its public Endpoint."""

    noun = "Runtime"
    id_field = "RuntimeId"
    list_field = "AgentKitRuntimes"
    create_request = runtime_requests.CreateRuntime
    update_request = runtime_requests.UpdateRuntime
    list_request = ListMade
    details = runtime_requests.ShownRuntime
    filters = ("Name", "Description", "Status", "ArtifactType")
    unlisted = (
        "FailedLogFileUrl",
        "MaxConcurrency",
        "MaxInstance",
        "MinInstance",
        "ModelAgentName",
        "StatusMessage",
    )

    def __init__(self, registry: RuntimeRegistry, sources: ArtifactSources) -> None:
        super().__init__(registry)
        self._runtimes = registry
        self._sources = sources

    @action("ReleaseRuntime", runtime_requests.OneVersion, RuntimeId=str)
    async def release(self, request: runtime_requests.OneVersion) -> dict[str, Any]:
        """Bring a version into force; an older version is a rollback."""
        await self._runtimes.release(request.RuntimeId, request.VersionNumber)
        return {"RuntimeId": request.RuntimeId}

    @action("GetRuntimeVersion", runtime_requests.OneVersion, runtime_requests.ShownVersion)
    async def get_version(self, request: runtime_requests.OneVersion) -> dict[str, Any]:
        """Return a version, by default the one in force."""
        managed = self._runtimes.get(request.RuntimeId)
        version = managed.runtime.version
        if request.VersionNumber is not None:
            version = managed.runtime.find_version(request.VersionNumber)
        return runtime_requests.shown_version(managed, version)

    @action(
        "ListRuntimeVersions",
        runtime_requests.ListVersions,
        AgentKitRuntimeVersions=list[runtime_requests.ShownVersion],
        NextToken=str,
    )
    async def list_versions(self, request: runtime_requests.ListVersions) -> dict[str, Any]:
        """Return the stored versions, oldest first."""
        managed = self._runtimes.get(request.RuntimeId)
        versions = (
            Listed(
                f"{version.number:09}",
                version.created_at,
                runtime_requests.shown_version(managed, version, listed=True),
            )
            for version in managed.runtime.versions
        )
        items, token = page(request, versions)
        return {"AgentKitRuntimeVersions": items, "NextToken": token}

    @action(
        "ListRuntimeInstances",
        runtime_requests.OneRuntime,
        InstanceItems=list[runtime_requests.ShownInstance],
        RunningInstance=int,
    )
    async def instances(self, request: runtime_requests.OneRuntime) -> dict[str, Any]:
        """Return the living instances; a runtime that is scaled to zero has none."""
        managed = self._runtimes.get(request.RuntimeId)
        items = runtime_requests.shown_instances(managed)
        running = sum(item["InstanceStatus"] == "Ready" for item in items)
        return {"InstanceItems": items, "RunningInstance": running}

    @action("GetRuntimeInstanceLogs", runtime_requests.InstanceLogs, Logs=str)
    async def logs(self, request: runtime_requests.InstanceLogs) -> dict[str, Any]:
        """Return the last lines of an instance, including of one that has ended recently."""
        managed = self._runtimes.get(request.RuntimeId)
        logs = managed.runtime.logs
        log = logs.of(request.InstanceName)
        if log is None:
            raise UnknownInstanceError(managed.name, request.InstanceName, logs.instances)
        return {"Logs": log.text(request.Limit)}

    async def _create(self, request: runtime_requests.CreateRuntime) -> Managed:
        runtime_requests.check_description(request)
        table = {
            "name": request.Name,
            **runtime_artifacts.read(request.ArtifactType, request.ArtifactUrl, self._sources),
            **_changes(request),
            "authorizer": runtime_requests.requested_authorizer(request.AuthorizerConfiguration),
        }
        if request.MaxInstance is None and request.MinInstance is not None:
            usual = Definition.model_fields["max_instances"].default
            table["max_instances"] = max(request.MinInstance, usual)
        with _declared():
            return await self._runtimes.create(
                table,
                fields=_fields(request),
                client_token=request.ClientToken,
                request=digest(request.model_dump(mode="json", exclude={"ClientToken"})),
            )

    async def _update(self, request: runtime_requests.UpdateRuntime) -> None:
        """Create a version; it serves when it is released, or at once with ReleaseEnable."""
        runtime_requests.check_description(request)
        kind = request.ArtifactType or runtime_artifacts.FILE
        artifact = {}
        if request.ArtifactUrl is None:
            runtime_artifacts.check_type(kind)
        else:
            artifact = runtime_artifacts.read(kind, request.ArtifactUrl, self._sources)
        with _declared():
            await self._runtimes.update(
                request.RuntimeId,
                {**artifact, **_changes(request)},
                fields=_fields(request),
                release=bool(request.ReleaseEnable),
            )

    def _details(self, managed: Managed) -> dict[str, Any]:
        return runtime_requests.details(managed)


def _changes(request: runtime_requests.RuntimeFields) -> dict[str, Any]:
    """Return a request's changes to a runtime's table, without the artifact."""
    scaling = {key: getattr(request, field) for field, key in _SCALING.items()}
    changes = {key: value for key, value in scaling.items() if value is not None}
    if request.MemoryMb is not None:
        changes["memory_limit"] = request.MemoryMb * MIB
    if request.Envs is not None:
        changes["environment"] = dict(variables(request.Envs))
    return changes


def _fields(request: runtime_requests.RuntimeFields) -> dict[str, Any]:
    """Return the fields that are stored and shown, but have no effect; note them as unread."""
    stored = request.model_dump(mode="json", exclude=_ACTED_ON, exclude_none=True)
    note_unread(sorted(stored.keys() - _SHOWN))
    return stored


@contextmanager
def _declared() -> Iterator[None]:
    """Report an error in a runtime's table with the field names of the request."""
    try:
        yield
    except SettingsError as error:
        key = error.key.split(".")[1] if "." in error.key else ""
        reason = getattr(error, "reason", None) or str(error)
        raise invalid(_FIELD_OF.get(key, "ArtifactUrl"), reason.rstrip(".")) from None
