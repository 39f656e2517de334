"""CreateMCPService, GetMCPService, ListMCPServices, UpdateMCPService, DeleteMCPService."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from typing_extensions import NotRequired, TypedDict

from agentdouble import journal
from agentdouble.control_plane import mcp_auth, mcp_backends
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.endpoints import NetworkConfiguration, network_configurations
from agentdouble.control_plane.mcp_auth import Outbound
from agentdouble.control_plane.mcp_backends import CreateMCPService, UpdateMCPService
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.control_plane.tool_actions import ResourceActions
from agentdouble.control_plane.tool_requests import Tag
from agentdouble.control_plane.wire import stamp
from agentdouble.mcp_hosting import PREFIX
from agentdouble.mcp_services import (
    Backend,
    CommandBackend,
    McpBackend,
    OpenApiBackend,
    Service,
    Services,
)

READY: Final = "Ready"
_INBOUND = "InboundAuthorizerConfiguration"
_OUTBOUND = "OutboundAuthorizerConfiguration"
_NOT_ACTED_ON = ("BackendType", "NetworkConfiguration")


class ListedService(TypedDict):
    """An MCP service as it appears in lists."""

    MCPServiceId: str
    Name: str
    Path: str
    ProjectName: str
    ProtocolType: str
    Status: Literal["Ready"]
    Tags: list[Tag]
    CreatedAt: str
    UpdatedAt: str
    NetworkConfigurations: list[NetworkConfiguration]


class Converted(TypedDict):
    """The definition of the HTTP API that a service converts, as JSON."""

    ProtocolConvertConfiguration: NotRequired[str]


class ShownService(ListedService):
    """An MCP service, with its backend and its keys."""

    BackendType: str
    BackendConfiguration: mcp_backends.BackendFields
    ProtocolConfiguration: Converted
    InboundAuthorizerConfiguration: mcp_auth.ShownAuthorizer
    OutboundAuthorizerConfiguration: NotRequired[Outbound]


class MCPServiceActions(ResourceActions[Service, CreateMCPService, UpdateMCPService]):
    """The actions on MCP services; each service answers at ``/mcp/<Name>``, shown as its Path."""

    noun = "MCPService"
    id_field = "MCPServiceId"
    list_field = "MCPServices"
    get_field = "MCPService"
    create_request = CreateMCPService
    update_request = UpdateMCPService
    filters = ("Name", "Status", "ProtocolType")
    shown = ShownService
    listed = ListedService

    def __init__(self, services: Services, sources: Sources) -> None:
        super().__init__(services)
        self._services = services
        self._sources = sources  # where commands may run

    async def _create(self, request: CreateMCPService) -> Service:
        _note(request)
        backend = await mcp_backends.make(
            request.ProtocolType,
            request.Path,
            request.BackendConfiguration,
            request.ProtocolConfiguration,
            request.OutboundAuthorizerConfiguration,
            self._sources,
        )
        earlier = self._services.made_by(request.ClientToken)
        given = request.InboundAuthorizerConfiguration
        keys = mcp_auth.asked_keys(_INBOUND, request.Name, given, earlier.keys if earlier else ())
        return await self._services.create(
            request.Name,
            backend,
            keys=keys or (),
            fields=_fields(request),
            client_token=request.ClientToken,
        )

    async def _update(self, request: UpdateMCPService) -> None:
        _note(request)
        service = self._services.get(request.MCPServiceId)
        given = request.InboundAuthorizerConfiguration
        keys = mcp_auth.asked_keys(_INBOUND, service.name, given, service.keys)
        backend = await _changed(service, request, self._sources)
        await self._services.update(service.id, backend=backend, keys=keys, fields=_fields(request))

    def _shown(self, one: Service) -> dict[str, Any]:
        given, backend = one.fields, one.backend
        where, _ = _where(one)
        protocol = {}
        if isinstance(backend, OpenApiBackend):
            protocol = {"ProtocolConvertConfiguration": backend.document}
        outbound = {_OUTBOUND: given[_OUTBOUND]} if _OUTBOUND in given else {}
        return {
            **dict(shown(one)),
            "BackendType": given.get("BackendType", "Custom"),
            "BackendConfiguration": given.get("BackendConfiguration", where),
            "ProtocolConfiguration": protocol,
            _INBOUND: mcp_auth.shown(given.get(_INBOUND), one.keys),
            **outbound,
        }

    def _listed(self, one: Service) -> dict[str, Any]:
        return dict(shown(one))


def shown(service: Service) -> ListedService:
    """Return a service as it appears in lists."""
    given = service.fields
    return {
        "MCPServiceId": service.id,
        "Name": service.name,
        "Path": PREFIX + service.name,
        "ProjectName": given.get("ProjectName", "default"),
        "ProtocolType": given.get("ProtocolType", _protocol(service.backend)),
        "Status": READY,
        "Tags": given.get("Tags", []),
        "CreatedAt": stamp(service.created_at),
        "UpdatedAt": stamp(service.updated_at),
        "NetworkConfigurations": network_configurations(given.get("NetworkConfiguration", {})),
    }


def _protocol(backend: Backend) -> str:
    return "HTTP" if isinstance(backend, OpenApiBackend) else "MCP"


def _where(service: Service) -> tuple[Mapping[str, Any], str]:
    """Return the BackendConfiguration and the Path of a service's backend."""
    backend = service.backend
    if isinstance(backend, CommandBackend):
        return mcp_backends.configuration(backend), "/"
    url = backend.url if isinstance(backend, McpBackend) else getattr(backend, "base_url", None)
    return ({}, "/") if url is None else mcp_backends.custom_configuration(url)


async def _changed(service: Service, request: UpdateMCPService, sources: Sources) -> Backend | None:
    """Return the new backend that a request sets, or None if it sets none."""
    before, given = service.backend, request.BackendConfiguration
    by = request.OutboundAuthorizerConfiguration
    if given is None and by is None:
        return None
    if not isinstance(before, (CommandBackend, McpBackend, OpenApiBackend)):
        name = "BackendConfiguration" if given is not None else _OUTBOUND
        raise invalid(name, "a server of the double's own process stands behind this service")
    where, path = _where(service)
    path = str(service.fields.get("Path", path))
    kept = service.fields.get("BackendConfiguration", where)
    backend = given or (mcp_backends.BackendFields.model_validate(kept) if kept else None)
    protocol = _protocol(before)
    configuration = None
    if isinstance(before, OpenApiBackend):
        api = mcp_backends.HttpApi(Configuration=before.document)
        configuration = mcp_backends.Protocol(HttpApiConfiguration=api)
    made = await mcp_backends.make(protocol, path, backend, configuration, by, sources)
    return made if by is not None else _as_before(made, before)


def _as_before(made: Backend, before: Backend) -> Backend:
    """Return a new backend with the credentials of the previous one."""
    if isinstance(made, McpBackend) and isinstance(before, McpBackend):
        return replace(made, headers=before.headers)
    if isinstance(made, OpenApiBackend) and isinstance(before, OpenApiBackend):
        return replace(made, auth=before.auth)
    return made


def _note(request: CreateMCPService | UpdateMCPService) -> None:
    """Note the fields that are stored and shown, but have no effect."""
    given = request.model_dump(exclude_none=True)
    unread = [name for name in _NOT_ACTED_ON if name in given]
    custom = given.get("BackendConfiguration", {}).get("CustomConfiguration", {})
    if "TlsSettings" in custom:
        unread.append("BackendConfiguration.CustomConfiguration.TlsSettings")
    api = given.get("ProtocolConfiguration", {}).get("HttpApiConfiguration", {})
    if "Type" in api:
        unread.append("ProtocolConfiguration.HttpApiConfiguration.Type")
    journal.note_unread(sorted(unread))


def _fields(request: CreateMCPService | UpdateMCPService) -> dict[str, Any]:
    """Return a request's fields for a service, without the keys and the definition."""
    left_out = {"Name": True, "ClientToken": True, "MCPServiceId": True}
    keys = {_INBOUND: {"Authorizer": {"KeyAuth": {"ApiKeys": True}}}}
    definition = {"ProtocolConfiguration": True}
    return request.model_dump(
        mode="json", exclude={**left_out, **keys, **definition}, exclude_none=True
    )
