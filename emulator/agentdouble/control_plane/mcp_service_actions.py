"""CreateMCPService, GetMCPService, ListMCPServices, UpdateMCPService, DeleteMCPService."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

from typing_extensions import NotRequired, TypedDict

from agentdouble.control_plane import addresses, mcp_auth, mcp_backends, public_errors, wire
from agentdouble.control_plane.mcp_auth import AuthorizerConfiguration
from agentdouble.control_plane.runtime_artifacts import ArtifactSources
from agentdouble.control_plane.tool_actions import ResourceActions
from agentdouble.journal.entries import note_unread
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


class ListedService(TypedDict):
    """An MCP service as it appears in lists."""

    MCPServiceId: str
    Name: str
    Path: str
    ProjectName: str
    ProtocolType: str
    Status: Literal["Ready"]
    Tags: list[wire.Tag]
    CreatedAt: str
    UpdatedAt: str
    NetworkConfigurations: list[addresses.NetworkConfiguration]


class Converted(TypedDict):
    """The definition of the HTTP API that a service converts, as JSON."""

    ProtocolConvertConfiguration: NotRequired[str]


class ShownService(ListedService):
    """An MCP service, with its backend and its keys."""

    BackendType: str
    BackendConfiguration: mcp_backends.BackendFields
    ProtocolConfiguration: Converted
    InboundAuthorizerConfiguration: AuthorizerConfiguration
    OutboundAuthorizerConfiguration: NotRequired[AuthorizerConfiguration]


class MCPServiceActions(
    ResourceActions[Service, mcp_backends.CreateMCPService, mcp_backends.UpdateMCPService]
):
    """The actions on MCP services; each service answers at ``/mcp/<Name>``, shown as its Path."""

    noun = "MCPService"
    id_field = "MCPServiceId"
    list_field = "MCPServices"
    get_field = "MCPService"
    create_request = mcp_backends.CreateMCPService
    update_request = mcp_backends.UpdateMCPService
    filters = ("Name", "Status", "ProtocolType")
    details = ShownService
    listed = ListedService

    def __init__(self, services: Services, sources: ArtifactSources) -> None:
        super().__init__(services)
        self._services = services
        self._sources = sources  # where commands may run

    async def _create(self, request: mcp_backends.CreateMCPService) -> Service:
        _note(request)
        api = request.ProtocolConfiguration and request.ProtocolConfiguration.HttpApiConfiguration
        backend = await mcp_backends.make(
            request.ProtocolType,
            request.Path,
            request.BackendConfiguration,
            api.Configuration if api else None,
            request.OutboundAuthorizerConfiguration,
            self._sources,
        )
        earlier = self._services.made_by(request.ClientToken)
        keys = mcp_auth.requested_keys(
            request.Name,
            request.InboundAuthorizerConfiguration,
            earlier.keys if earlier else (),
        )
        return await self._services.create(
            request.Name,
            backend,
            keys=keys or (),
            fields=_fields(request),
            client_token=request.ClientToken,
        )

    async def _update(self, request: mcp_backends.UpdateMCPService) -> None:
        _note(request)
        service = self._services.get(request.MCPServiceId)
        keys = mcp_auth.requested_keys(
            service.name, request.InboundAuthorizerConfiguration, service.keys
        )
        backend = await self._changed(service, request)
        await self._services.update(service.id, backend=backend, keys=keys, fields=_fields(request))

    async def _changed(
        self, service: Service, request: mcp_backends.UpdateMCPService
    ) -> Backend | None:
        """Return the new backend that a request sets, or None if it sets none."""
        before, requested = service.backend, request.BackendConfiguration
        authorizer = request.OutboundAuthorizerConfiguration
        if requested is None and authorizer is None:
            return None
        if not isinstance(before, (CommandBackend, McpBackend, OpenApiBackend)):
            name = "BackendConfiguration" if requested is not None else mcp_auth.OUTBOUND
            raise public_errors.invalid(
                name, "this service is backed by a server inside the double's process"
            )
        fields, path = mcp_backends.configuration(before)
        fields = service.fields.get("BackendConfiguration", fields)
        backend = await mcp_backends.make(
            _protocol(before),
            str(service.fields.get("Path", path)),
            requested or (mcp_backends.BackendFields.model_validate(fields) if fields else None),
            before.document if isinstance(before, OpenApiBackend) else None,
            authorizer,
            self._sources,
        )
        if authorizer is None and isinstance(backend, McpBackend):
            return replace(backend, headers=getattr(before, "headers", {}))
        if authorizer is None and isinstance(backend, OpenApiBackend):
            return replace(backend, auth=getattr(before, "auth", None))
        return backend

    def _details(self, service: Service) -> dict[str, Any]:
        stored, backend = service.fields, service.backend
        fields, _ = mcp_backends.configuration(backend)
        document = backend.document if isinstance(backend, OpenApiBackend) else None
        outbound = stored.get(mcp_auth.OUTBOUND)
        return {
            **self._listed(service),
            "BackendType": stored.get("BackendType", "Custom"),
            "BackendConfiguration": stored.get("BackendConfiguration", fields),
            "ProtocolConfiguration": {"ProtocolConvertConfiguration": document} if document else {},
            mcp_auth.INBOUND: mcp_auth.inbound(stored.get(mcp_auth.INBOUND), service.keys),
            **({mcp_auth.OUTBOUND: outbound} if outbound else {}),
        }

    def _listed(self, service: Service) -> dict[str, Any]:
        stored = service.fields
        return {
            "MCPServiceId": service.id,
            "Name": service.name,
            "Path": PREFIX + service.name,
            "ProjectName": stored.get("ProjectName", "default"),
            "ProtocolType": stored.get("ProtocolType", _protocol(service.backend)),
            "Status": READY,
            "Tags": stored.get("Tags", []),
            "CreatedAt": wire.stamp(service.created_at),
            "UpdatedAt": wire.stamp(service.updated_at),
            "NetworkConfigurations": addresses.network_configurations(
                stored.get("NetworkConfiguration", {})
            ),
        }


def _protocol(backend: Backend) -> str:
    return "HTTP" if isinstance(backend, OpenApiBackend) else "MCP"


def _note(request: mcp_backends.CreateMCPService | mcp_backends.UpdateMCPService) -> None:
    """Note the fields that are stored and shown, but have no effect."""
    values = request.model_dump(exclude_none=True)
    unread: list[str] = [name for name in ("BackendType", "NetworkConfiguration") if name in values]
    if "TlsSettings" in values.get("BackendConfiguration", {}).get("CustomConfiguration", {}):
        unread.append("BackendConfiguration.CustomConfiguration.TlsSettings")
    if "Type" in values.get("ProtocolConfiguration", {}).get("HttpApiConfiguration", {}):
        unread.append("ProtocolConfiguration.HttpApiConfiguration.Type")
    note_unread(sorted(unread))


def _fields(
    request: mcp_backends.CreateMCPService | mcp_backends.UpdateMCPService,
) -> dict[str, Any]:
    """Return a request's fields for a service, without the keys and the definition."""
    excluded = ("Name", "ClientToken", "MCPServiceId", "ProtocolConfiguration")
    keys = {mcp_auth.INBOUND: {"Authorizer": {"KeyAuth": {"ApiKeys": True}}}}
    return request.model_dump(
        mode="json", exclude={**dict.fromkeys(excluded, True), **keys}, exclude_none=True
    )
