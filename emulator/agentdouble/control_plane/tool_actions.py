"""CreateTool, GetTool, ListTools, UpdateTool, DeleteTool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentdouble import journal
from agentdouble.control_plane import networks, tool_requests
from agentdouble.control_plane.codes import as_action_errors, refused
from agentdouble.control_plane.fields import stamp
from agentdouble.control_plane.listing import Listed, Pages
from agentdouble.control_plane.reading import invalid, read
from agentdouble.control_plane.routes import Action
from agentdouble.errors import NotBuiltError
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.tools import CODE_ENV, Tool, Tools

READY = "Ready"
_FILTERS = {
    "Id": "ToolId",
    "Name": "Name",
    "Description": "Description",
    "Status": "Status",
    "ToolType": "ToolType",
}
_OTHER_TYPES = ("SkillEnv", "Private", "HermesEnv", "ArkClawEnv")
_HEEDED = frozenset(
    ("ToolId", "Name", "ToolType", "ClientToken", "Description", "ProjectName", "Envs", "Tags")
)
_NOT_LISTED = frozenset(
    (
        *("AssociatedRuntimes", "PolicyName", "CpuMilli", "MemoryMb", "SkillSpaceId"),
        *("EnableObjectSetIsolation", "EnableSecurity", "EnableSnapshot", "LarkAppId"),
        *("LarkAppSecret", "TosMountConfig", "UseCodingPlan"),
    )
)


class ToolActions:
    """The actions on tools; a tool that is deleted takes its sessions with it."""

    def __init__(self, tools: Tools, instances: Instances) -> None:
        self._tools = tools
        self._instances = instances
        self._pages = Pages()

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by the names of the platform."""
        return {
            "CreateTool": self.create,
            "GetTool": self.get,
            "ListTools": self.list,
            "UpdateTool": self.update,
            "DeleteTool": self.delete,
        }

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a tool, or give the id of the one that the same ClientToken has made."""
        request = read(tool_requests.CreateTool, body)
        _check(request, request.ToolType)
        try:
            with as_action_errors():
                tool = await self._tools.create(request.Name, _fields(request), request.ClientToken)
        except ValueError as error:
            raise invalid("ClientToken", str(error)) from None
        return {"ToolId": tool.id}

    async def get(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show a tool."""
        request = read(tool_requests.ToolRef, body)
        with as_action_errors():
            tool = self._tools.get(request.ToolId)
        return {"AssociatedRuntimes": [], "PolicyName": "", **_shown(tool)}

    async def list(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show the tools that pass every filter, made first comes first."""
        request = read(tool_requests.ListTools, body)
        passes = request.passes(_FILTERS)
        found = (_listed(tool) for tool in self._tools.all())
        passing = (one for one in found if passes(one))
        items, token = self._pages.cut("ListTools", request, passing)
        return {"Tools": items, "NextToken": token}

    async def update(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change what is said of a tool; what is not in the request stays."""
        request = read(tool_requests.UpdateTool, body)
        _check(request, request.ToolType or CODE_ENV)
        with as_action_errors():
            tool = await self._tools.update(request.ToolId, _fields(request))
        return {"ToolId": tool.id}

    async def delete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Delete a tool and end its sessions."""
        request = read(tool_requests.ToolRef, body)
        with as_action_errors():
            await self._tools.delete(request.ToolId)
        await self._instances.destroy_of(request.ToolId, "its tool was deleted")
        return {"ToolId": request.ToolId}


def _check(request: tool_requests.ToolFields, tool_type: str) -> None:
    """Refuse what would mislead; name the fields that are kept and shown, and no more."""
    if tool_type in _OTHER_TYPES:
        raise refused(NotBuiltError(f"The ToolType {tool_type}"))
    if tool_type != CODE_ENV:
        known = ", ".join((CODE_ENV, *_OTHER_TYPES))
        raise invalid("ToolType", f"{tool_type[:100]!r} is none of {known}")
    if request.TosMountConfig is not None and request.TosMountConfig.EnableTos:
        raise refused(NotBuiltError("Object storage in a sandbox (TosMountConfig)"))
    journal.note_unread(sorted(_fields(request).keys() - _HEEDED))


def _fields(request: tool_requests.ToolFields) -> dict[str, Any]:
    """Return what a request says of a tool, as it was given."""
    return request.model_dump(
        mode="json", exclude={"ToolId", "Name", "ToolType", "ClientToken"}, exclude_none=True
    )


def _shown(tool: Tool) -> dict[str, Any]:
    given = dict(tool.fields)
    network = given.pop("NetworkConfiguration", {})
    return {
        "Description": "",
        "ProjectName": "default",
        "Envs": [],
        "Tags": [],
        **given,
        "ToolId": tool.id,
        "Name": tool.name,
        "ToolType": tool.type,
        "Status": READY,
        "CreatedAt": stamp(tool.created_at),
        "UpdatedAt": stamp(tool.updated_at),
        "NetworkConfigurations": networks.shown(network),
    }


def _listed(tool: Tool) -> Listed:
    item = {name: value for name, value in _shown(tool).items() if name not in _NOT_LISTED}
    return Listed(tool.id, {"CreatedAt": tool.created_at, "UpdatedAt": tool.updated_at}, item)
