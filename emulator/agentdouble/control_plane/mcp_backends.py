"""The backends of MCP services: their configuration in requests, and the backends it describes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentdouble.control_plane import mcp_auth
from agentdouble.control_plane.addresses import Network
from agentdouble.control_plane.mcp_auth import AuthorizerConfiguration
from agentdouble.control_plane.public_errors import invalid, missing
from agentdouble.control_plane.runtime_artifacts import ArtifactSources
from agentdouble.control_plane.wire import Tag, Wire
from agentdouble.core import ledger, strict_json
from agentdouble.errors import ActionError, NotBuiltError
from agentdouble.mcp_services import Backend, CommandBackend, McpBackend, OpenApiBackend

_PACKAGE = "BackendConfiguration.CustomMcpConfiguration.PublicPackage"
_CUSTOM = "BackendConfiguration.CustomConfiguration"
_STDIO = "stdio"
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?")
_NOT_BUILT = {
    "CustomMcpConfiguration": "A server that the platform runs",  # without a RawConfig
    "EcsConfiguration": "A backend on machines of the cloud",
    "FunctionConfiguration": "A backend that is a function of the cloud",
    "VkeConfiguration": "A backend in a cluster of the cloud",
}


class Custom(Wire):
    """The address of a backend; with the service's Path it makes a URL (U-MCP-SERVICE-WIRE)."""

    TlsSettings: dict[str, Any] | None = None  # stored, but without effect
    Domain: str | None = None
    Port: int | None = Field(None, ge=1, le=65535)
    ProtocolType: str | None = None


class Package(Wire):
    """A server that the platform would run from a package; RawConfig has its command."""

    McpType: str | None = None
    PackageManagerType: str | None = None
    RawConfig: str | None = None


class CustomMcp(Wire):
    """A server that the platform would run; refused, unless it is a command."""

    PublicPackage: Package | None = None


class BackendFields(Wire):
    """The backend of a service; those in the cloud are refused."""

    CustomConfiguration: Custom | None = None
    CustomMcpConfiguration: CustomMcp | None = None
    EcsConfiguration: Any = None
    FunctionConfiguration: Any = None
    VkeConfiguration: Any = None


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
    BackendConfiguration: BackendFields | None = None
    InboundAuthorizerConfiguration: AuthorizerConfiguration | None = None
    NetworkConfiguration: Network | None = None
    OutboundAuthorizerConfiguration: AuthorizerConfiguration | None = None
    ProtocolConfiguration: Protocol | None = None
    Tags: list[Tag] | None = None


class UpdateMCPService(Wire):
    """The body of UpdateMCPService."""

    MCPServiceId: str
    BackendType: str | None = None
    BackendConfiguration: BackendFields | None = None
    InboundAuthorizerConfiguration: AuthorizerConfiguration | None = None
    OutboundAuthorizerConfiguration: AuthorizerConfiguration | None = None


class RawConfigServer(BaseModel):
    """The server in a RawConfig, as clients write it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    command: str
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] | None = None
    cwd: str | None = None
    type: Any = None
    transport: Any = None


async def make(
    protocol: str,
    path: str,
    backend: BackendFields | None,
    definition: str | None,
    authorizer: AuthorizerConfiguration | None,
    sources: ArtifactSources,
) -> Backend:
    """Return the backend that the fields of CreateMCPService describe.

    A command may run in ``sources``. Raises ActionError, BackendError and DefinitionError.
    """
    ledger.choose("U-MCP-SERVICE-WIRE")
    kind = protocol.upper()
    custom = backend.CustomMcpConfiguration if backend else None
    package = custom.PublicPackage if custom else None
    if kind == "MCP" and package is not None and package.RawConfig:
        if authorizer is not None:
            reason = "a command gets its credentials from env in its RawConfig"
            raise invalid(mcp_auth.OUTBOUND, reason)
        return _command(package, package.RawConfig, sources)
    url = _url(backend, path)
    if kind == "MCP":
        if url is None:
            raise missing(f"{_CUSTOM}.Domain")
        return McpBackend(url, mcp_auth.headers(authorizer))
    if kind != "HTTP":
        raise invalid("ProtocolType", f"{protocol[:100]!r} is not one of MCP, HTTP")
    if definition is None:
        raise missing("ProtocolConfiguration.HttpApiConfiguration.Configuration")
    auth = mcp_auth.authentication(authorizer)
    base_url = url.rstrip("/") if url else None
    return await OpenApiBackend.vetted(definition, base_url=base_url, auth=auth)


def _command(package: Package, text: str, sources: ArtifactSources) -> CommandBackend:
    """Return the backend that a package's RawConfig describes; raise ActionError, BackendError."""
    sources = ArtifactSources(sources.roots, f"{_PACKAGE}.RawConfig")
    if (package.McpType or _STDIO).lower() != _STDIO:
        kind = str(package.McpType)[:100]
        raise NotBuiltError(f"A package of the type {kind!r} ({_PACKAGE}.McpType)")
    try:
        value = strict_json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong("it is not JSON") from None
    servers = value.get("mcpServers", {"": value}) if isinstance(value, dict) else None
    if not isinstance(servers, dict) or len(servers) != 1:
        form = '{"mcpServers": {NAME: {"command": ..., "args": [...]}}}'
        raise _wrong(f"it is {form}, with one server")
    (fields,) = servers.values()
    if isinstance(fields, dict) and "url" in fields:
        raise _wrong("its server has a url: use CustomConfiguration for a server with an address")
    try:
        server = RawConfigServer.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(map(str, first["loc"])) or "server"
        raise _wrong(f"its {location[:100]} is invalid: {first['msg']}") from None
    directory = sources.roots[0]
    if server.cwd is not None:
        directory = sources.resolve(Path(server.cwd))
        if not Path(server.cwd).is_absolute() or not directory.is_dir():
            raise _wrong(f"cwd {server.cwd[:100]!r} is not the absolute path of a directory")
    command = (server.command, *server.args)
    return CommandBackend(command, directory, server.env or {}, sources=sources.roots)


def _wrong(reason: str) -> ActionError:
    return invalid(f"{_PACKAGE}.RawConfig", reason)


def _url(fields: BackendFields | None, path: str) -> str | None:
    """Return the URL of a backend, or None if the request has no backend."""
    if not path.startswith("/"):
        raise invalid("Path", f"{path[:100]!r} must begin with '/'")
    for name, feature in _NOT_BUILT.items():
        if getattr(fields, name, None) is not None:
            raise NotBuiltError(f"{feature} (BackendConfiguration.{name})")
    custom = fields.CustomConfiguration if fields else None
    if custom is None:
        return None
    if not custom.Domain:
        raise missing(f"{_CUSTOM}.Domain")
    if not _HOST.fullmatch(custom.Domain):
        raise invalid(f"{_CUSTOM}.Domain", f"{custom.Domain[:100]!r} is not a host name")
    scheme = (custom.ProtocolType or ("https" if custom.Port == 443 else "http")).lower()
    if scheme not in ("http", "https"):
        raise invalid(f"{_CUSTOM}.ProtocolType", f"{scheme[:100]!r} is not one of http, https")
    host = f"[{custom.Domain.strip('[]')}]" if ":" in custom.Domain else custom.Domain
    port = "" if custom.Port is None else f":{custom.Port}"
    return f"{scheme}://{host}{port}{path}"


def configuration(backend: Backend) -> tuple[Mapping[str, Any], str]:
    """Return the BackendConfiguration and the Path of a backend, however it was made."""
    if isinstance(backend, CommandBackend):
        command, *args = backend.command
        server = {"command": command, "args": args, "env": dict(backend.environment)}
        server["cwd"] = str(backend.directory)
        package = {"McpType": _STDIO, "RawConfig": json.dumps(server)}
        return {"CustomMcpConfiguration": {"PublicPackage": package}}, "/"
    url = backend.url if isinstance(backend, McpBackend) else getattr(backend, "base_url", None)
    if url is None:
        return {}, "/"
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    custom = {"Domain": parts.hostname or "", "Port": port, "ProtocolType": parts.scheme}
    query = f"?{parts.query}" if parts.query else ""
    return {"CustomConfiguration": custom}, (parts.path or "/") + query
