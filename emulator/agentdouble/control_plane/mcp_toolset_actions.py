"""CreateMCPToolset to DeleteMCPToolset, GetMCPTools and ListMCPTools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from typing_extensions import NotRequired, TypedDict

from agentdouble import journal, ledger
from agentdouble.control_plane import client_auth, mcp_requests, mcp_service_actions
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.described import action, action_of
from agentdouble.control_plane.endpoints import NetworkConfiguration, network_configurations
from agentdouble.control_plane.mcp_requests import CreateMCPToolset, UpdateMCPToolset
from agentdouble.control_plane.mcp_service_actions import READY, ListedService
from agentdouble.control_plane.resource_actions import ResourceActions
from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.tool_requests import Tag
from agentdouble.control_plane.wire import read, stamp
from agentdouble.errors import McpServiceError
from agentdouble.mcp_hosting import PREFIX
from agentdouble.mcp_services.toolsets import Exposes, Toolset, Toolsets

_AUTHORIZER = "AuthorizerConfiguration"
_NOT_ACTED_ON = ("NetworkConfiguration", "Path")


class ListedToolset(TypedDict):
    """A toolset with its services and its keys."""

    MCPToolsetId: str
    Name: str
    Path: str
    ProjectName: str
    Status: Literal["Ready"]
    Tags: list[Tag]
    CreatedAt: str
    UpdatedAt: str
    NetworkConfigurations: list[NetworkConfiguration]
    AuthorizerConfiguration: client_auth.ShownAuthorizer
    MCPServices: list[ListedService]


class ShownToolset(ListedToolset):
    """A toolset as GetMCPToolset shows it."""

    AssociatedRuntimes: list[str]


class ToolsResult(TypedDict):
    """The tools as a JSON array, and why a service did not tell its own."""

    Tools: str
    Errors: NotRequired[list[str]]


class ServiceTools(TypedDict):
    """The tools of a service as a JSON array, or why it did not tell them."""

    MCPServiceId: str
    Tools: str
    Error: NotRequired[str]


class ServiceToolsResult(TypedDict):
    """The tools of several services."""

    MCPServiceTools: list[ServiceTools]


class MCPToolsetActions(ResourceActions[Toolset, CreateMCPToolset, UpdateMCPToolset]):
    """The actions on toolsets; each toolset answers at ``/mcp/<Name>``, shown as its Path."""

    noun = "MCPToolset"
    id_field = "MCPToolsetId"
    list_field = "MCPToolsets"
    get_field = "MCPToolset"
    create_request = CreateMCPToolset
    update_request = UpdateMCPToolset
    filters = ("Name", "Status")
    unlisted = ("AssociatedRuntimes",)
    shown = ShownToolset
    listed = ListedToolset
    errors = (McpServiceError,)

    def __init__(self, toolsets: Toolsets) -> None:
        super().__init__(toolsets)
        self._toolsets = toolsets

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by their names on the platform."""
        more = {"GetMCPTools": self.tools, "ListMCPTools": self.tools_of_services}
        return {**super().by_name(), **more}

    async def _create(self, request: CreateMCPToolset) -> Toolset:
        given = request.model_dump(exclude_none=True)
        journal.note_unread([name for name in _NOT_ACTED_ON if name in given])
        ids = _ids("MCPServiceIds", request.MCPServiceIds)
        earlier = self._toolsets.made_by(request.ClientToken)
        keys = client_auth.asked_keys(
            _AUTHORIZER,
            request.Name,
            request.AuthorizerConfiguration,
            earlier.keys if earlier else (),
        )
        return await self._toolsets.create(
            request.Name,
            ids,
            exposes=cast(Exposes, ledger.choose("U-MCP-TOOLSET-TOOLS")),
            keys=keys or (),
            fields=_fields(request),
            client_token=request.ClientToken,
        )

    async def _update(self, request: UpdateMCPToolset) -> None:
        journal.note_unread(["ClientToken"] if request.ClientToken is not None else [])
        toolset = self._toolsets.get(request.MCPToolsetId)
        given = request.AuthorizerConfiguration
        keys = client_auth.asked_keys(_AUTHORIZER, toolset.name, given, toolset.keys)
        ids = request.MCPServiceIds
        await self._toolsets.update(
            toolset.id,
            service_ids=None if ids is None else _ids("MCPServiceIds", ids),
            keys=keys,
            fields=_fields(request),
        )

    def _shown(self, one: Toolset) -> dict[str, Any]:
        given = one.fields
        services = self._toolsets.services(one)
        return {
            "AssociatedRuntimes": [],
            "MCPToolsetId": one.id,
            "Name": one.name,
            "Path": PREFIX + one.name,
            "ProjectName": given.get("ProjectName", "default"),
            "Status": READY,
            "Tags": given.get("Tags", []),
            "CreatedAt": stamp(one.created_at),
            "UpdatedAt": stamp(one.updated_at),
            "NetworkConfigurations": network_configurations(given.get("NetworkConfiguration", {})),
            _AUTHORIZER: client_auth.shown(given.get(_AUTHORIZER), one.keys),
            "MCPServices": [mcp_service_actions.shown(service) for service in services],
        }

    @action_of(lambda self: (self._one_request, ToolsResult))
    async def tools(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tools of a toolset's services, as a JSON array of merged names."""
        toolset = self._find(body)
        found = (await self._toolsets.tools(toolset)).values()
        tools = [tool for service in found if not isinstance(service, str) for tool in service]
        errors = [service for service in found if isinstance(service, str)]
        return {"Tools": json.dumps(tools), **({"Errors": errors} if errors else {})}

    @action(mcp_requests.ListMCPTools, ServiceToolsResult, McpServiceError)
    async def tools_of_services(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tools of each service of several toolsets, with their names in the service."""
        request = read(mcp_requests.ListMCPTools, body)
        found: dict[str, Any] = {}
        ids = _ids("MCPToolsetIds", request.MCPToolsetIds)
        for toolset in [self._toolsets.get(one) for one in ids]:
            found |= await self._toolsets.tools(toolset, merged=False)
        return {"MCPServiceTools": [_service_tools(*one) for one in found.items()]}


def _service_tools(service_id: str, tools: Any) -> ServiceTools:
    if isinstance(tools, str):
        return {"MCPServiceId": service_id, "Tools": "[]", "Error": tools}
    return {"MCPServiceId": service_id, "Tools": json.dumps(tools)}


def _ids(name: str, text: str) -> list[str]:
    """Return the ids in a string field: separated by commas, or a JSON array."""
    if text.lstrip().startswith("["):
        try:
            ids = json.loads(text)
        except ValueError:
            ids = None
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise invalid(name, "it is neither ids with commas between nor a JSON array of ids")
    else:
        ids = [one.strip() for one in text.split(",") if one.strip()]
    if not ids:
        raise invalid(name, "it names nothing")
    return ids


def _fields(request: CreateMCPToolset | UpdateMCPToolset) -> dict[str, Any]:
    """Return a request's fields for a toolset, without the keys and the services."""
    left_out = dict.fromkeys(("Name", "ClientToken", "MCPToolsetId", "MCPServiceIds"), True)
    keys = {_AUTHORIZER: {"Authorizer": {"KeyAuth": {"ApiKeys": True}}}}
    return request.model_dump(mode="json", exclude={**left_out, **keys}, exclude_none=True)
