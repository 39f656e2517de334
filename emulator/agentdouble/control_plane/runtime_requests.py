"""The requests of the actions on runtimes, field by field as the platform's client types them."""

from __future__ import annotations

from pydantic import Field

from agentdouble.control_plane.fields import EnvList, Wire
from agentdouble.control_plane.listing import Paging
from agentdouble.control_plane.networks import Network
from agentdouble.control_plane.tool_requests import Authorizer, Tls


class Tag(Wire):
    """A tag."""

    Key: str
    Value: str | None = None


class RuntimeFields(Wire):
    """What CreateRuntime and UpdateRuntime both take."""

    ApmplusEnable: bool | None = None
    CpuMilli: int | None = Field(None, ge=1)
    Description: str | None = None
    KnowledgeId: str | None = None
    MCPToolsetId: str | None = None
    MaxConcurrency: int | None = Field(None, ge=1)
    MaxInstance: int | None = Field(None, ge=1)
    MemoryId: str | None = None
    MemoryMb: int | None = Field(None, ge=1)
    MinInstance: int | None = Field(None, ge=0)
    ModelAgentName: str | None = None
    ToolId: str | None = None
    Envs: EnvList | None = None
    Tags: list[Tag] | None = None


class CreateRuntime(RuntimeFields):
    """The body of CreateRuntime."""

    Name: str
    RoleName: str
    ArtifactType: str
    ArtifactUrl: str
    ClientToken: str | None = Field(None, min_length=1, max_length=128)
    GatewayInstanceId: str | None = None
    GatewayMode: str | None = None
    ProjectName: str | None = None
    AuthorizerConfiguration: Authorizer | None = None
    NetworkConfiguration: Network | None = None
    TlsConfiguration: Tls | None = None


class UpdateRuntime(RuntimeFields):
    """The body of UpdateRuntime."""

    RuntimeId: str
    ArtifactType: str | None = None
    ArtifactUrl: str | None = None
    ReleaseEnable: bool | None = None


class OneRuntime(Wire):
    """The body of ListRuntimeInstances."""

    RuntimeId: str


class OneVersion(Wire):
    """The body of ReleaseRuntime, where no number is the newest, and GetRuntimeVersion."""

    RuntimeId: str
    VersionNumber: int | None = Field(None, ge=1)


class InstanceLogs(Wire):
    """The body of GetRuntimeInstanceLogs; ``Limit`` counts lines."""

    RuntimeId: str
    InstanceName: str
    Limit: int | None = Field(None, ge=1, le=10_000)


class ListVersions(Paging):
    """The body of ListRuntimeVersions."""

    RuntimeId: str
