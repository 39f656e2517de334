"""CreateMCPToolset to DeleteMCPToolset, GetMCPTools and ListMCPTools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from agentdouble import journal, ledger
from agentdouble.control_plane import client_auth, mcp_requests, mcp_service_actions, networks
from agentdouble.control_plane.codes import as_action_errors
from agentdouble.control_plane.fields import stamp
from agentdouble.control_plane.listing import Listed, Pages
from agentdouble.control_plane.mcp_service_actions import READY, passing
from agentdouble.control_plane.reading import invalid, read
from agentdouble.control_plane.routes import Action
from agentdouble.mcp_hosting import PREFIX
from agentdouble.mcp_services.toolsets import Exposes, Toolset, Toolsets

_AUTHORIZER = "AuthorizerConfiguration"
_FILTERS = {"Id": "MCPToolsetId", "Name": "Name", "Status": "Status"}
_NOT_ACTED_ON = ("NetworkConfiguration", "Path")


class MCPToolsetActions:
    """The actions on toolsets; each answers at ``/mcp/<Name>``, which is shown as its Path."""

    def __init__(self, toolsets: Toolsets) -> None:
        self._toolsets = toolsets
        self._pages = Pages()

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by the names of the platform."""
        return {
            "CreateMCPToolset": self.create,
            "GetMCPToolset": self.get,
            "ListMCPToolsets": self.list,
            "UpdateMCPToolset": self.update,
            "DeleteMCPToolset": self.delete,
            "GetMCPTools": self.tools,
            "ListMCPTools": self.tools_of_services,
        }

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a toolset, or give the id of the one that the same ClientToken has made."""
        request = read(mcp_requests.CreateMCPToolset, body)
        given = request.model_dump(exclude_none=True)
        journal.note_unread([name for name in _NOT_ACTED_ON if name in given])
        ids = _ids("MCPServiceIds", request.MCPServiceIds)
        earlier = self._toolsets.made_by(request.ClientToken)
        with as_action_errors():
            keys = client_auth.asked_keys(
                _AUTHORIZER,
                request.Name,
                request.AuthorizerConfiguration,
                earlier.keys if earlier else (),
            )
            try:
                toolset = await self._toolsets.create(
                    request.Name,
                    ids,
                    exposes=cast(Exposes, ledger.choose("U-MCP-TOOLSET-TOOLS")),
                    keys=keys or (),
                    fields=_fields(request),
                    client_token=request.ClientToken,
                )
            except ValueError as error:
                raise invalid("ClientToken", str(error)) from None
        return {"MCPToolsetId": toolset.id}

    async def get(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show a toolset."""
        toolset = self._one(body)
        return {"MCPToolset": {"AssociatedRuntimes": [], **self._shown(toolset)}}

    async def list(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show the toolsets that pass every filter, made first comes first."""
        request = read(mcp_requests.ListMCP, body)
        found = (
            Listed(toolset.id, {"CreatedAt": toolset.created_at}, self._shown(toolset))
            for toolset in self._toolsets.all()
        )
        items, token = self._pages.cut(
            "ListMCPToolsets", request, passing(request, found, _FILTERS)
        )
        return {"MCPToolsets": items, "NextToken": token}

    async def update(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change which services a toolset has, or its keys; what is not in the request stays."""
        request = read(mcp_requests.UpdateMCPToolset, body)
        journal.note_unread(["ClientToken"] if request.ClientToken is not None else [])
        with as_action_errors():
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
        return {"MCPToolsetId": toolset.id}

    async def delete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """End a toolset with its sessions; its services stay."""
        toolset = self._one(body)
        with as_action_errors():
            await self._toolsets.delete(toolset.id)
        return {"MCPToolsetId": toolset.id}

    async def tools(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show the tools of a toolset's services, as a JSON array, by the toolset's names."""
        toolset = self._one(body)
        found = (await self._toolsets.tools(toolset)).values()
        tools = [tool for service in found if not isinstance(service, str) for tool in service]
        errors = [service for service in found if isinstance(service, str)]
        return {"Tools": json.dumps(tools), **({"Errors": errors} if errors else {})}

    async def tools_of_services(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Show the tools of each service of several toolsets, by the service's own names."""
        request = read(mcp_requests.ListMCPTools, body)
        found: dict[str, Any] = {}
        with as_action_errors():
            ids = _ids("MCPToolsetIds", request.MCPToolsetIds)
            for toolset in [self._toolsets.get(one) for one in ids]:
                found |= await self._toolsets.tools(toolset, merged=False)
        return {"MCPServiceTools": [_service_tools(*one) for one in found.items()]}

    def _one(self, body: Mapping[str, Any]) -> Toolset:
        request = read(mcp_requests.OneMCPToolset, body)
        with as_action_errors():
            return self._toolsets.get(request.MCPToolsetId)

    def _shown(self, toolset: Toolset) -> dict[str, Any]:
        given = toolset.fields
        services = self._toolsets.services(toolset)
        return {
            "MCPToolsetId": toolset.id,
            "Name": toolset.name,
            "Path": PREFIX + toolset.name,
            "ProjectName": given.get("ProjectName", "default"),
            "Status": READY,
            "Tags": given.get("Tags", []),
            "CreatedAt": stamp(toolset.created_at),
            "UpdatedAt": stamp(toolset.updated_at),
            "NetworkConfigurations": networks.shown(given.get("NetworkConfiguration", {})),
            _AUTHORIZER: client_auth.shown(given.get(_AUTHORIZER), toolset.keys),
            "MCPServices": [mcp_service_actions.shown(service) for service in services],
        }


def _service_tools(service_id: str, tools: Any) -> dict[str, Any]:
    if isinstance(tools, str):
        return {"MCPServiceId": service_id, "Tools": "[]", "Error": tools}
    return {"MCPServiceId": service_id, "Tools": json.dumps(tools)}


def _ids(name: str, text: str) -> list[str]:
    """Return the ids in a field that is a string: with commas between, or a JSON array."""
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


def _fields(
    request: mcp_requests.CreateMCPToolset | mcp_requests.UpdateMCPToolset,
) -> dict[str, Any]:
    """Return what a request says of a toolset, but the keys and the services, kept elsewhere."""
    left_out = dict.fromkeys(("Name", "ClientToken", "MCPToolsetId", "MCPServiceIds"), True)
    keys = {_AUTHORIZER: {"Authorizer": {"KeyAuth": {"ApiKeys": True}}}}
    return request.model_dump(mode="json", exclude={**left_out, **keys}, exclude_none=True)
