"""The backends of MCP services: their configuration in requests, and what is made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from agentdouble import ledger, strict_json
from agentdouble.control_plane import mcp_auth
from agentdouble.control_plane.action_errors import invalid, missing
from agentdouble.control_plane.endpoints import Network
from agentdouble.control_plane.mcp_auth import Inbound, Outbound
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.control_plane.tool_requests import Tag
from agentdouble.control_plane.wire import EnvList, Wire
from agentdouble.errors import ActionError, NotBuiltError
from agentdouble.mcp_services import Backend, CommandBackend, McpBackend, OpenApiBackend


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


class BackendFields(Wire):
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
    BackendConfiguration: BackendFields | None = None
    InboundAuthorizerConfiguration: Inbound | None = None
    NetworkConfiguration: Network | None = None
    OutboundAuthorizerConfiguration: Outbound | None = None
    ProtocolConfiguration: Protocol | None = None
    Tags: list[Tag] | None = None


class UpdateMCPService(Wire):
    """The body of UpdateMCPService."""

    MCPServiceId: str
    BackendType: str | None = None
    BackendConfiguration: BackendFields | None = None
    InboundAuthorizerConfiguration: Inbound | None = None
    OutboundAuthorizerConfiguration: Outbound | None = None


FIELD = "BackendConfiguration.CustomMcpConfiguration.PublicPackage"
_RAW = f"{FIELD}.RawConfig"
_STDIO = "stdio"
_KEYS = ("command", "args", "env", "cwd", "type", "transport")


def make_command(package: Package, sources: Sources) -> CommandBackend:
    """Return the backend that a package's RawConfig describes; raise ActionError, BackendError."""
    if (package.McpType or _STDIO).lower() != _STDIO:
        raise NotBuiltError(
            f"A package of the type {str(package.McpType)[:100]!r} ({FIELD}.McpType)"
        )
    given = _server(package.RawConfig or "")
    command = (_text(given, "command"), *_texts(given.get("args", []), "args"))
    environment = given.get("env") or {}
    if not isinstance(environment, dict):
        raise _wrong("its env is an object of texts")
    _texts([*environment.values()], "env")
    place = _text(given, "cwd") if given.get("cwd") is not None else None
    directory = _directory(place, sources)
    return CommandBackend(command, directory, environment, sources=sources.roots)


def configuration(backend: CommandBackend) -> Mapping[str, Any]:
    """Return the BackendConfiguration of a command."""
    first, *rest = backend.command
    server = {
        "command": first,
        "args": rest,
        "env": dict(backend.environment),
        "cwd": str(backend.directory),
    }
    package = {"McpType": _STDIO, "RawConfig": json.dumps(server)}
    return {"CustomMcpConfiguration": {"PublicPackage": package}}


def sources_of(sources: Sources) -> Sources:
    """Return the directories with errors that name this field."""
    return Sources(sources.roots, _RAW)


def _server(text: str) -> Mapping[str, Any]:
    """Return the only server of a configuration."""
    try:
        value = strict_json.loads(text)
    except strict_json.NoNumberError as error:
        raise _wrong(f"it is no JSON: {error}") from None
    except (ValueError, RecursionError):
        raise _wrong("it is no JSON") from None
    servers = value.get("mcpServers", {"": value}) if isinstance(value, dict) else None
    if not isinstance(servers, dict) or len(servers) != 1:
        raise _wrong(
            'it is {"mcpServers": {NAME: {"command": ..., "args": [...]}}}, with one server'
        )
    (server,) = servers.values()
    if not isinstance(server, dict):
        raise _wrong("its server is an object")
    if "url" in server:
        raise _wrong("its server has a url: a server with an address is a CustomConfiguration")
    unknown = [name for name in server if name not in _KEYS]
    if unknown:
        raise _wrong(f"its server has {unknown[0][:100]!r}, which is none of {', '.join(_KEYS)}")
    return server


def _directory(place: str | None, sources: Sources) -> Path:
    if place is None:
        return sources.roots[0]
    if not Path(place).is_absolute():
        raise _wrong(f"its cwd {place[:100]!r} is no absolute path")
    found = sources.resolve(Path(place))
    if not found.is_dir():
        raise _wrong(f"there is no directory {found}")
    return found


def _text(given: Mapping[str, Any], name: str) -> str:
    return _texts([given.get(name)], name)[0]


def _texts(values: Any, name: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _wrong(f"its {name} is text")
    return values


def _wrong(why: str) -> ActionError:
    return invalid(_RAW, why)


_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?")
_NOT_BUILT = {
    "CustomMcpConfiguration": "A server that the platform runs",  # without a RawConfig
    "EcsConfiguration": "A backend on machines of the cloud",
    "FunctionConfiguration": "A backend that is a function of the cloud",
    "VkeConfiguration": "A backend in a cluster of the cloud",
}


async def make(
    protocol: str,
    path: str,
    backend: BackendFields | None,
    definition: Protocol | None,
    authorizer: Outbound | None,
    sources: Sources,
) -> Backend:
    """Return the backend that the fields of CreateMCPService describe.

    A command may run in ``sources``.

    Raises ActionError, BackendError and DefinitionError.
    """
    ledger.choose("U-MCP-SERVICE-WIRE")
    kind = protocol.upper()
    package = _package(backend)
    if kind == "MCP" and package is not None:
        if mcp_auth.headers(authorizer):
            raise invalid(mcp_auth.NAME, "a command gets its credentials as env of its RawConfig")
        return make_command(package, sources_of(sources))
    where = _where(backend, path)
    if kind == "MCP":
        if where is None:
            raise missing("BackendConfiguration.CustomConfiguration.Domain")
        return McpBackend(where, mcp_auth.headers(authorizer))
    if kind != "HTTP":
        raise invalid("ProtocolType", f"{protocol[:100]!r} is none of MCP, HTTP")
    api = definition.HttpApiConfiguration if definition else None
    if api is None or api.Configuration is None:
        raise missing("ProtocolConfiguration.HttpApiConfiguration.Configuration")
    text, auth = api.Configuration, mcp_auth.authentication(authorizer)
    base_url = where.rstrip("/") if where else None
    return await OpenApiBackend.vetted(text, base_url=base_url, auth=auth)


def _package(given: BackendFields | None) -> Package | None:
    """Return the package of a backend that this machine can run as a command, or None."""
    custom = given.CustomMcpConfiguration if given else None
    package = custom.PublicPackage if custom else None
    return package if package and package.RawConfig else None


def _where(given: BackendFields | None, path: str) -> str | None:
    """Return the URL of a backend, or None if the request has no backend."""
    if not path.startswith("/"):
        raise invalid("Path", f"{path[:100]!r} does not begin with '/'")
    for name, what in _NOT_BUILT.items():
        if getattr(given, name, None) is not None:
            raise NotBuiltError(f"{what} (BackendConfiguration.{name})")
    custom = given.CustomConfiguration if given else None
    if custom is None:
        return None
    field = "BackendConfiguration.CustomConfiguration"
    if not custom.Domain:
        raise missing(f"{field}.Domain")
    if not _HOST.fullmatch(custom.Domain):
        raise invalid(f"{field}.Domain", f"{custom.Domain[:100]!r} is no name of a host")
    scheme = (custom.ProtocolType or ("https" if custom.Port == 443 else "http")).lower()
    if scheme not in ("http", "https"):
        raise invalid(f"{field}.ProtocolType", f"{scheme[:100]!r} is none of http, https")
    host = f"[{custom.Domain.strip('[]')}]" if ":" in custom.Domain else custom.Domain
    port = "" if custom.Port is None else f":{custom.Port}"
    return f"{scheme}://{host}{port}{path}"


def custom_configuration(url: str) -> tuple[Mapping[str, Any], str]:
    """Return the BackendConfiguration and the Path of a backend with this URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    custom = {"Domain": parts.hostname or "", "Port": port, "ProtocolType": parts.scheme}
    query = f"?{parts.query}" if parts.query else ""
    return {"CustomConfiguration": custom}, (parts.path or "/") + query
