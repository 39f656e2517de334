"""CreateTool, GetTool, ListTools, UpdateTool, DeleteTool."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, create_model

from agentdouble.control_plane import addresses, public_errors, wire
from agentdouble.control_plane.action_methods import Action, ActionMethods, action_of, fields
from agentdouble.control_plane.listing import Listed, ListMade, ListNamed, page
from agentdouble.errors import NotBuiltError
from agentdouble.journal.entries import note_unread
from agentdouble.sandbox.session_snapshots import SessionSnapshots
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.tools import TYPES, Tool, Tools
from agentdouble.state import Registry, Resource

R = TypeVar("R", bound=Resource)
C = TypeVar("C", bound=BaseModel)
U = TypeVar("U", bound=BaseModel)

ToolName = Annotated[str, Field(min_length=1, max_length=128)]

READY = "Ready"
_OTHER_TYPES = (
    *("Skill", "SkillEnv", "DevEnv", "StudioEnv"),
    *("OpenClaw", "ArkClawEnv", "HermesEnv", "Private"),
)
_HEEDED = {"Description", "ProjectName", "Envs", "Tags", "EnableSnapshot"}


class ResourceActions(ActionMethods, Generic[R, C, U]):
    """The actions on one kind of resource, which a subclass describes.

    ``_create`` and ``_update`` carry out a request; ``_details`` returns the fields of GetX.
    """

    noun: ClassVar[str]  # CreateTool, GetTool, ListTools, UpdateTool, DeleteTool
    id_field: ClassVar[str]
    list_field: ClassVar[str]
    get_field: ClassVar[str | None] = None  # None: GetX shows the fields themselves
    filters: ClassVar[tuple[str, ...]]  # fields that filters may name, in addition to the id
    unlisted: ClassVar[tuple[str, ...]] = ()  # fields that GetX shows and ListX does not
    list_request: ClassVar[type[ListNamed]] = ListNamed
    details: ClassVar[Any]  # the type of what GetX shows
    listed: ClassVar[Any] = None  # the type of what ListX shows, if it is another one
    create_request: type[C]
    update_request: type[U]

    def __init__(self, registry: Registry[R]) -> None:
        self._registry = registry
        id_only: Any = {self.id_field: (str, ...)}
        self._one_request = create_model(f"One{self.noun}", __base__=wire.Wire, **id_only)

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by their names on the platform."""
        return {
            **super().by_name(),
            f"Create{self.noun}": self.create,
            f"Get{self.noun}": self.get,
            f"List{self.noun}s": self.list,
            f"Update{self.noun}": self.update,
            f"Delete{self.noun}": self.delete,
        }

    @action_of(lambda self: (self.create_request, self._id_result()))
    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a resource, or return the id of the one that the same ClientToken created."""
        request = wire.read(self.create_request, body)
        resource = await self._create(request)
        return {self.id_field: resource.id}

    @action_of(lambda self: (self._one_request, self._get_result()))
    async def get(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a resource."""
        details = self._details(self._find(body))
        return details if self.get_field is None else {self.get_field: details}

    @action_of(lambda self: (self.list_request, self._list_result()))
    async def list(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the resources that pass every filter, the oldest first."""
        request = wire.read(self.list_request, body)
        matches = request.matching({"Id": self.id_field, **{name: name for name in self.filters}})
        rows = (Listed(r.id, r.created_at, self._listed(r)) for r in self._registry.all())
        items, token = page(request, (listed for listed in rows if matches(listed.item)))
        return {self.list_field: items, "NextToken": token}

    @action_of(lambda self: (self.update_request, self._id_result()))
    async def update(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change a resource; fields that are not in the request stay."""
        request = wire.read(self.update_request, body)
        await self._update(request)
        return {self.id_field: getattr(request, self.id_field)}

    @action_of(lambda self: (self._one_request, self._id_result()))
    async def delete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Delete a resource."""
        resource = self._find(body)
        await self._delete(resource)
        return {self.id_field: resource.id}

    def _id_result(self) -> Any:
        return fields(f"{self.noun}Id", **{self.id_field: str})

    def _get_result(self) -> Any:
        if self.get_field is None:
            return self.details
        return fields(f"Get{self.noun}Result", **{self.get_field: self.details})

    def _list_result(self) -> Any:
        item: Any = self.listed or self.details
        items = {self.list_field: builtins.list[item]}
        return fields(f"List{self.noun}sResult", **items, NextToken=str)

    def _find(self, body: Mapping[str, Any]) -> R:
        """Return the resource with the id of a request that has no other field."""
        request = wire.read(self._one_request, body)
        return self._registry.get(getattr(request, self.id_field))

    async def _create(self, request: C) -> R:
        raise NotImplementedError

    async def _update(self, request: U) -> None:
        raise NotImplementedError

    async def _delete(self, resource: R) -> None:
        await self._registry.delete(resource.id)

    def _details(self, resource: R) -> dict[str, Any]:
        raise NotImplementedError

    def _listed(self, resource: R) -> dict[str, Any]:
        """Return the fields that ListX shows."""
        details = self._details(resource).items()
        return {name: value for name, value in details if name not in self.unlisted}


class TosMount(wire.Wire):
    """The object storage in a sandbox; refused if it is enabled."""

    Credentials: dict[str, Any] | None = None
    CredentialType: str | None = None
    MountPoints: list[dict[str, Any]] | None = None
    EnableTos: bool | None = None


class ToolFields(wire.Wire):
    """The common fields of CreateTool and UpdateTool."""

    ApmplusEnable: bool | None = None
    Command: str | None = None
    CpuMilli: int | None = Field(None, ge=1)
    Description: str | None = None
    EnableMcp: bool | None = None
    ImageUrl: str | None = None
    LarkAppId: str | None = None
    LarkAppSecret: str | None = None
    MemoryMb: int | None = Field(None, ge=1)
    ModelAgentName: str | None = None
    Port: int | None = Field(None, ge=1, le=65535)
    UseCodingPlan: bool | None = None
    TosMountConfig: TosMount | None = None
    Envs: wire.EnvList | None = None


class CreateTool(ToolFields):
    """The body of CreateTool."""

    Name: ToolName
    ToolType: str
    ClientToken: str | None = Field(None, min_length=1, max_length=128)
    EnableObjectSetIsolation: bool | None = None
    EnableSecurity: bool | None = None
    EnableSnapshot: bool | None = None
    ProjectName: str | None = None
    RoleName: str | None = None
    SkillSpaceId: str | None = None
    AuthorizerConfiguration: wire.Authorizer | None = None
    NetworkConfiguration: addresses.Network | None = None
    TlsConfiguration: wire.Tls | None = None
    Tags: list[wire.Tag] | None = None


class UpdateTool(ToolFields):
    """The body of UpdateTool."""

    ToolId: str
    ToolType: str | None = None


class ShownTool(CreateTool):
    """A tool: the fields of its creation, and its current state."""

    ToolId: str
    Status: Literal["Ready"]
    CreatedAt: str
    UpdatedAt: str
    NetworkConfigurations: list[addresses.NetworkConfiguration]
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
    details = ShownTool
    filters = ("Name", "Description", "Status", "ToolType")
    unlisted = (
        *("AssociatedRuntimes", "PolicyName", "CpuMilli", "MemoryMb", "SkillSpaceId"),
        *("EnableObjectSetIsolation", "EnableSecurity", "EnableSnapshot", "LarkAppId"),
        *("LarkAppSecret", "TosMountConfig", "UseCodingPlan"),
    )

    def __init__(
        self, tools: Tools, sessions: SandboxSessions, snapshots: SessionSnapshots
    ) -> None:
        super().__init__(tools)
        self._tools = tools
        self._sessions = sessions
        self._snapshots = snapshots

    async def _create(self, request: CreateTool) -> Tool:
        _check(request)
        return await self._tools.create(
            request.Name, request.ToolType, _fields(request), request.ClientToken
        )

    async def _update(self, request: UpdateTool) -> None:
        _check(request)
        await self._tools.update(request.ToolId, request.ToolType, _fields(request))

    async def _delete(self, tool: Tool) -> None:
        await self._tools.delete(tool.id)
        await self._sessions.destroy_of(tool.id, "its tool was deleted")
        await self._snapshots.drop_of(tool.id)

    def _details(self, tool: Tool) -> dict[str, Any]:
        fields = dict(tool.fields)
        network = fields.pop("NetworkConfiguration", {})
        return {
            "AssociatedRuntimes": [],
            "PolicyName": "",
            "Description": "",
            "ProjectName": "default",
            "Envs": [],
            "Tags": [],
            **fields,
            "ToolId": tool.id,
            "Name": tool.name,
            "ToolType": tool.type,
            "Status": READY,
            "CreatedAt": wire.stamp(tool.created_at),
            "UpdatedAt": wire.stamp(tool.updated_at),
            "NetworkConfigurations": addresses.network_configurations(network),
        }


def _check(request: CreateTool | UpdateTool) -> None:
    """Refuse fields that would mislead; note fields that are stored and shown, without effect."""
    tool_type = request.ToolType
    if tool_type in _OTHER_TYPES:
        instead = f"Create the tool with the ToolType {' or '.join(TYPES)}."
        raise NotBuiltError(f"The ToolType {tool_type}", instead)
    if tool_type is not None and tool_type not in TYPES:
        known_types = ", ".join((*TYPES, *_OTHER_TYPES))
        raise public_errors.invalid("ToolType", f"{tool_type[:100]!r} is not one of {known_types}")
    if request.TosMountConfig is not None and request.TosMountConfig.EnableTos:
        raise NotBuiltError("Object storage in a sandbox (TosMountConfig)")
    note_unread(sorted(_fields(request).keys() - _HEEDED))


def _fields(request: ToolFields) -> dict[str, Any]:
    """Return a request's fields for a tool, unchanged."""
    return request.model_dump(
        mode="json", exclude={"ToolId", "Name", "ToolType", "ClientToken"}, exclude_none=True
    )
