"""The requests of the actions on tools, with the field types of the platform's client."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agentdouble.control_plane.wire import EnvList, Network, Wire

ToolName = Annotated[str, Field(min_length=1, max_length=128)]


class Tag(Wire):
    """A tag."""

    Key: str
    Type: str | None = None
    Value: str | None = None


class ByKey(Wire):
    """A key that clients must send."""

    ApiKey: str | None = None
    ApiKeyLocation: str | None = None
    ApiKeyName: str | None = None


class ByToken(Wire):
    """A token that clients must send."""

    AllowedClients: list[str] | None = None
    DiscoveryUrl: str


class Authorizer(Wire):
    """How clients authenticate; stored and shown."""

    CustomJwtAuthorizer: ByToken | None = None
    KeyAuth: ByKey | None = None


class Tls(Wire):
    """The destination of logs; stored and shown."""

    EnableLog: bool
    TlsProjectId: str | None = None
    TlsTopicId: str | None = None


class TosMount(Wire):
    """The object storage in a sandbox; refused if it is enabled."""

    Credentials: dict[str, Any] | None = None
    CredentialType: str | None = None
    MountPoints: list[dict[str, Any]] | None = None
    EnableTos: bool | None = None


class ToolFields(Wire):
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
    Envs: EnvList | None = None


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
    AuthorizerConfiguration: Authorizer | None = None
    NetworkConfiguration: Network | None = None
    TlsConfiguration: Tls | None = None
    Tags: list[Tag] | None = None


class UpdateTool(ToolFields):
    """The body of UpdateTool."""

    ToolId: str
    ToolType: str | None = None
