"""CreateTool, GetTool, ListTools, UpdateTool, DeleteTool."""

from __future__ import annotations

from typing import Any, Literal

from agentdouble import journal
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.endpoints import NetworkConfiguration, network_configurations
from agentdouble.control_plane.listing import ListMade
from agentdouble.control_plane.resource_actions import ResourceActions
from agentdouble.control_plane.tool_requests import CreateTool, ToolFields, UpdateTool
from agentdouble.control_plane.wire import stamp
from agentdouble.errors import NotBuiltError, SandboxError
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.session_snapshots import SessionSnapshots
from agentdouble.sandbox.tools import CODE_ENV, Tool, Tools

READY = "Ready"
_OTHER_TYPES = ("SkillEnv", "Private", "HermesEnv", "ArkClawEnv")
_HEEDED = frozenset(
    (
        "ToolId",
        "Name",
        "ToolType",
        "ClientToken",
        "Description",
        "ProjectName",
        "Envs",
        "Tags",
        "EnableSnapshot",
    )
)


class ShownTool(CreateTool):
    """A tool: the fields with which it was created, and what became of it."""

    ToolId: str
    Status: Literal["Ready"]
    CreatedAt: str
    UpdatedAt: str
    NetworkConfigurations: list[NetworkConfiguration]
    AssociatedRuntimes: list[str] | None = None
    PolicyName: str | None = None


class ToolActions(ResourceActions[Tool, CreateTool, UpdateTool]):
    """The actions on tools; deleting a tool ends its sessions and their snapshots."""

    noun = "Tool"
    id_field = "ToolId"
    list_field = "Tools"
    create_request = CreateTool
    update_request = UpdateTool
    list_request = ListMade
    shown = ShownTool
    errors = (SandboxError,)
    filters = ("Name", "Description", "Status", "ToolType")
    unlisted = (
        "AssociatedRuntimes",
        "PolicyName",
        "CpuMilli",
        "MemoryMb",
        "SkillSpaceId",
        "EnableObjectSetIsolation",
        "EnableSecurity",
        "EnableSnapshot",
        "LarkAppId",
        "LarkAppSecret",
        "TosMountConfig",
        "UseCodingPlan",
    )

    def __init__(self, tools: Tools, instances: Instances, snapshots: SessionSnapshots) -> None:
        super().__init__(tools)
        self._tools = tools
        self._instances = instances
        self._snapshots = snapshots

    async def _create(self, request: CreateTool) -> Tool:
        _check(request, request.ToolType)
        return await self._tools.create(request.Name, _fields(request), request.ClientToken)

    async def _update(self, request: UpdateTool) -> None:
        _check(request, request.ToolType or CODE_ENV)
        await self._tools.update(request.ToolId, _fields(request))

    async def _delete(self, one: Tool) -> None:
        await self._tools.delete(one.id)
        await self._instances.destroy_of(one.id, "its tool was deleted")
        await self._snapshots.drop_of(one.id)

    def _shown(self, one: Tool) -> dict[str, Any]:
        given = dict(one.fields)
        network = given.pop("NetworkConfiguration", {})
        return {
            "AssociatedRuntimes": [],
            "PolicyName": "",
            "Description": "",
            "ProjectName": "default",
            "Envs": [],
            "Tags": [],
            **given,
            "ToolId": one.id,
            "Name": one.name,
            "ToolType": one.type,
            "Status": READY,
            "CreatedAt": stamp(one.created_at),
            "UpdatedAt": stamp(one.updated_at),
            "NetworkConfigurations": network_configurations(network),
        }


def _check(request: ToolFields, tool_type: str) -> None:
    """Refuse fields that would mislead; note fields that are stored and shown, without effect."""
    if tool_type in _OTHER_TYPES:
        raise NotBuiltError(f"The ToolType {tool_type}")
    if tool_type != CODE_ENV:
        known = ", ".join((CODE_ENV, *_OTHER_TYPES))
        raise invalid("ToolType", f"{tool_type[:100]!r} is none of {known}")
    if request.TosMountConfig is not None and request.TosMountConfig.EnableTos:
        raise NotBuiltError("Object storage in a sandbox (TosMountConfig)")
    journal.note_unread(sorted(_fields(request).keys() - _HEEDED))


def _fields(request: ToolFields) -> dict[str, Any]:
    """Return a request's fields for a tool, unchanged."""
    return request.model_dump(
        mode="json", exclude={"ToolId", "Name", "ToolType", "ClientToken"}, exclude_none=True
    )
