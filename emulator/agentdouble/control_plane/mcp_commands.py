"""The command of an MCP service, as the RawConfig of a public package: the clients' own format.

``{"mcpServers": {"files": {"command": "npx", "args": ["-y", "PACKAGE"], "env": {}, "cwd": "/DIR"}}}``,
or the inner object alone (U-MCP-SERVICE-WIRE). The same holds for it as for the ArtifactUrl of a
runtime: its directory, and an interpreter that it names, lie below ``runtime_sources``, and nothing
outside is shown to it. Without ``cwd`` the first of these is its directory. The processes are
confined.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentdouble import strict_json
from agentdouble.control_plane import runtime_artifacts
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.mcp_requests import Package
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.errors import ActionError, NotBuiltError
from agentdouble.mcp_services import CommandBackend

FIELD = "BackendConfiguration.CustomMcpConfiguration.PublicPackage"
_RAW = f"{FIELD}.RawConfig"
_STDIO = "stdio"
_KEYS = ("command", "args", "env", "cwd", "type", "transport")


def make(package: Package, sources: Sources) -> CommandBackend:
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
    runtime_artifacts.check_command(command, directory, sources)
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
