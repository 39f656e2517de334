"""The requests of the actions on MCP services, with the field types of the platform's client."""

from __future__ import annotations

from pydantic import Field

from agentdouble.control_plane.backend_auth import Outbound
from agentdouble.control_plane.client_auth import Inbound
from agentdouble.control_plane.endpoints import Network
from agentdouble.control_plane.tool_requests import Tag
from agentdouble.control_plane.wire import EnvList, Wire


class Tls(Wire):
    """How a backend's certificate is verified; stored, but without effect."""

    TlsMode: str


class Custom(Wire):
    """The address of a backend; with the service's Path it makes a URL (U-MCP-SERVICE-WIRE)."""

    TlsSettings: Tls | None = None
    Domain: str | None = None
    Port: int | None = Field(None, ge=1, le=65535)
    ProtocolType: str | None = None


class Image(Wire):
    """A server that the platform would run from an image; refused."""

    Envs: EnvList | None = None
    Command: str | None = None
    ImageUrl: str | None = None


class Package(Wire):
    """A server that the platform would run from a package; RawConfig has its command."""

    McpType: str | None = None
    PackageManagerType: str | None = None
    RawConfig: str | None = None


class CustomMcp(Wire):
    """A server that the platform would run; refused, unless it is a command."""

    PrivatePackage: Image | None = None
    PublicPackage: Package | None = None
    EnableApmplus: bool | None = None
    FunctionId: str | None = None
    FunctionName: str | None = None


class EcsInstance(Wire):
    """A machine of the cloud."""

    InstanceId: str | None = None
    Ip: str | None = None
    Port: int | None = None


class Ecs(Wire):
    """A backend on machines of the cloud; refused."""

    Instances: list[EcsInstance] | None = None


class Function(Wire):
    """A backend that is a function of the cloud; refused."""

    FunctionId: str | None = None
    FunctionName: str | None = None


class Vke(Wire):
    """A backend in a cluster of the cloud; refused."""

    ClusterId: str | None = None
    Namespace: str | None = None
    Port: int | None = None
    ServiceName: str | None = None


class Backend(Wire):
    """The backend of a service."""

    CustomConfiguration: Custom | None = None
    CustomMcpConfiguration: CustomMcp | None = None
    EcsConfiguration: Ecs | None = None
    FunctionConfiguration: Function | None = None
    VkeConfiguration: Vke | None = None


class HttpApi(Wire):
    """A Swagger or OpenAPI definition, as text."""

    Configuration: str | None = None
    Type: str | None = None


class Protocol(Wire):
    """How a service converts an HTTP API."""

    HttpApiConfiguration: HttpApi | None = None


class CreateMCPService(Wire):
    """The body of CreateMCPService."""

    Name: str
    Path: str
    ProtocolType: str
    BackendType: str
    ClientToken: str | None = Field(None, min_length=1, max_length=128)
    ProjectName: str | None = None
    BackendConfiguration: Backend | None = None
    InboundAuthorizerConfiguration: Inbound | None = None
    NetworkConfiguration: Network | None = None
    OutboundAuthorizerConfiguration: Outbound | None = None
    ProtocolConfiguration: Protocol | None = None
    Tags: list[Tag] | None = None


class UpdateMCPService(Wire):
    """The body of UpdateMCPService."""

    MCPServiceId: str
    BackendType: str | None = None
    BackendConfiguration: Backend | None = None
    InboundAuthorizerConfiguration: Inbound | None = None
    OutboundAuthorizerConfiguration: Outbound | None = None
