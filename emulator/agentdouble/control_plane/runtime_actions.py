"""CreateRuntime, GetRuntime, ListRuntimes, UpdateRuntime, ReleaseRuntime, DeleteRuntime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentdouble import journal
from agentdouble.control_plane import runtime_artifacts, runtime_requests
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.described import action, fields
from agentdouble.control_plane.endpoints import NetworkConfiguration
from agentdouble.control_plane.listing import ListMade
from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.control_plane.runtime_requests import (
    CreateRuntime,
    OneVersion,
    RuntimeFields,
    UpdateRuntime,
    asked_authorizer,
)
from agentdouble.control_plane.tool_actions import ResourceActions
from agentdouble.control_plane.wire import read, variables
from agentdouble.errors import SettingsError
from agentdouble.runtimes.definition import Scaling
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
_ACTED_ON = frozenset(
    (
        *("RuntimeId", "Name", "ClientToken", "ReleaseEnable", "ArtifactType", "ArtifactUrl"),
        *("Envs", "AuthorizerConfiguration", "MemoryMb", *_SCALING),
    )
)
_SHOWN = frozenset(("Description", "ProjectName", "Tags"))


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
    NetworkConfigurations: list[NetworkConfiguration]


class RuntimeActions(ResourceActions[Managed, CreateRuntime, UpdateRuntime]):
    """The actions on runtimes; each answers at ``/runtimes/<Name>``, its public Endpoint."""

    noun = "Runtime"
    id_field = "RuntimeId"
    list_field = "AgentKitRuntimes"
    create_request = CreateRuntime
    update_request = UpdateRuntime
    list_request = ListMade
    shown = ShownRuntime
    filters = ("Name", "Description", "Status", "ArtifactType")
    unlisted = (
        "FailedLogFileUrl",
        "MaxConcurrency",
        "MaxInstance",
        "MinInstance",
        "ModelAgentName",
        "StatusMessage",
    )

    def __init__(self, registry: RuntimeRegistry, sources: Sources) -> None:
        super().__init__(registry)
        self._runtimes = registry
        self._sources = sources

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by their names on the platform."""
        return {**super().by_name(), "ReleaseRuntime": self.release}

    @action(OneVersion, fields("ReleaseRuntimeResult", RuntimeId=str))
    async def release(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Bring a version into force; an older version is a rollback."""
        request = read(OneVersion, body)
        await self._runtimes.release(request.RuntimeId, request.VersionNumber)
        return {"RuntimeId": request.RuntimeId}

    async def _create(self, request: CreateRuntime) -> Managed:
        artifact = runtime_artifacts.read(request.ArtifactType, request.ArtifactUrl, self._sources)
        table = {
            "name": request.Name,
            **artifact,
            **_changes(request),
            "authorizer": asked_authorizer(request.AuthorizerConfiguration),
        }
        if request.MaxInstance is None and request.MinInstance is not None:
            table["max_instances"] = max(request.MinInstance, Scaling().max_instances)
        runtime_artifacts.check_there({"environment": {}, **table})
        with _declared():
            return await self._runtimes.create(
                table,
                fields=_fields(request),
                client_token=request.ClientToken,
                request=digest(request.model_dump(mode="json", exclude={"ClientToken"})),
            )

    async def _update(self, request: UpdateRuntime) -> None:
        """Create a version; it serves when it is released, or at once with ReleaseEnable."""
        with _declared():
            await self._runtimes.update(
                request.RuntimeId,
                {**self._artifact(request), **_changes(request)},
                fields=_fields(request),
                release=bool(request.ReleaseEnable),
            )

    def _shown(self, one: Managed) -> dict[str, Any]:
        return runtime_requests.whole(one)

    def _artifact(self, request: UpdateRuntime) -> dict[str, Any]:
        kind = request.ArtifactType or runtime_artifacts.FILE
        if request.ArtifactUrl is None:
            runtime_artifacts.check_type(kind)
            return {}
        artifact = runtime_artifacts.read(kind, request.ArtifactUrl, self._sources)
        runtime_artifacts.check_there({**artifact, **_changes(request)})
        return artifact


def _changes(request: RuntimeFields) -> dict[str, Any]:
    """Return a request's changes to a runtime's table, without the artifact."""
    scaling = {key: getattr(request, field) for field, key in _SCALING.items()}
    said = {key: value for key, value in scaling.items() if value is not None}
    if request.MemoryMb is not None:
        said["memory_limit"] = request.MemoryMb * MIB
    if request.Envs is not None:
        said["environment"] = dict(variables(request.Envs))
    return said


def _fields(request: RuntimeFields) -> dict[str, Any]:
    """Return the fields that are stored and shown, but have no effect; note them as unread."""
    said = request.model_dump(mode="json", exclude=set(_ACTED_ON), exclude_none=True)
    journal.note_unread(sorted(said.keys() - _SHOWN))
    return said


@contextmanager
def _declared() -> Iterator[None]:
    """Report an error in a runtime's table with the field names of the request."""
    try:
        yield
    except SettingsError as error:
        key = error.key.split(".")[1] if "." in error.key else ""
        reason = getattr(error, "reason", None) or str(error)
        raise invalid(_FIELD_OF.get(key, "ArtifactUrl"), reason.rstrip(".")) from None
