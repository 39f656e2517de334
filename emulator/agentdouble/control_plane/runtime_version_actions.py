"""GetRuntimeVersion, ListRuntimeVersions, ListRuntimeInstances, GetRuntimeInstanceLogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from agentdouble.control_plane import runtime_requests
from agentdouble.control_plane.described import action, fields
from agentdouble.control_plane.listing import Pages
from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.wire import read, stamp
from agentdouble.errors import UnknownInstanceError, UnknownVersionError
from agentdouble.runtimes.definition import Version
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.registry import Managed, RuntimeRegistry

_LINES = 1000
_STATUS = {"starting": "Starting", "ready": "Ready", "draining": "Terminating"}


class ShownVersion(runtime_requests.CreateRuntime):
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


_Versions = fields(
    "ListRuntimeVersionsResult", AgentKitRuntimeVersions=list[ShownVersion], NextToken=str
)
_Instances = fields(
    "ListRuntimeInstancesResult", InstanceItems=list[ShownInstance], RunningInstance=int
)
_Logs = fields("GetRuntimeInstanceLogsResult", Logs=str)


class RuntimeVersionActions:
    """The actions on a runtime's versions, its instances and their logs."""

    def __init__(self, registry: RuntimeRegistry) -> None:
        self._registry = registry
        self._pages = Pages()

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by their names on the platform."""
        return {
            "GetRuntimeVersion": self.get,
            "ListRuntimeVersions": self.list,
            "ListRuntimeInstances": self.instances,
            "GetRuntimeInstanceLogs": self.logs,
        }

    @action(runtime_requests.OneVersion, ShownVersion)
    async def get(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a version, by default the one in force."""
        request = read(runtime_requests.OneVersion, body)
        found = self._registry.get(request.RuntimeId)
        return runtime_requests.version(found, _version(found, request.VersionNumber))

    @action(runtime_requests.ListVersions, _Versions)
    async def list(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the versions that are kept, the oldest first."""
        request = read(runtime_requests.ListVersions, body)
        found = self._registry.get(request.RuntimeId)
        every = (runtime_requests.listed_version(found, one) for one in found.runtime.versions)
        items, token = self._pages.cut("ListRuntimeVersions", request, every)
        return {"AgentKitRuntimeVersions": items, "NextToken": token}

    @action(runtime_requests.OneRuntime, _Instances)
    async def instances(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the living instances; a runtime that is scaled to zero has none."""
        request = read(runtime_requests.OneRuntime, body)
        found = self._registry.get(request.RuntimeId)
        living = found.runtime.instances
        ready = sum(instance.state == "ready" for instance in living)
        items = [_instance(found, instance) for instance in living]
        return {"InstanceItems": items, "RunningInstance": ready}

    @action(runtime_requests.InstanceLogs, _Logs)
    async def logs(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the last lines of an instance, also of one that has ended recently."""
        request = read(runtime_requests.InstanceLogs, body)
        found = self._registry.get(request.RuntimeId)
        logs = found.runtime.logs
        log = logs.of(request.InstanceName)
        if log is None:
            raise UnknownInstanceError(found.name, request.InstanceName, logs.instances)
        return {"Logs": log.text(request.Limit or _LINES)}


def _version(found: Managed, number: int | None) -> Version:
    every = {one.number: one for one in found.runtime.versions}
    if number is None:
        return found.runtime.version
    if number not in every:
        raise UnknownVersionError(found.name, number, sorted(every))
    return every[number]


def _instance(found: Managed, instance: Instance) -> ShownInstance:
    return {
        "InstanceName": instance.name,
        "AliasName": instance.name,
        "InstanceStatus": _STATUS.get(instance.state, "Terminated"),
        "CreateTime": stamp(instance.created_at),
        "RevisionNumber": instance.version,
        "RuntimeId": found.id,
    }
