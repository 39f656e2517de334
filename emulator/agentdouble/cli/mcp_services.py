"""``agentdouble mcp create | list | delete``: the MCP services of a running double."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer

from agentdouble.cli import control, env, sessions
from agentdouble.cli.control import ControlPlane
from agentdouble.errors import AgentDoubleError

_SUFFIXES = (".json", ".yaml", ".yml")


def create(
    name: str,
    words: Sequence[str],
    url: str | None,
    *,
    base_url: str | None,
    bearer: str | None,
    api_key: str | None,
    environment: Sequence[str],
    as_json: bool,
) -> None:
    """Create a service and print its access record.

    ``words`` are a backend, or the words of a command.
    """
    backend = words[0]
    if len(words) == 1 and _is_url(backend):
        fields = {"ProtocolType": "MCP", **located(backend, "BACKEND")}
        fields |= _outbound(bearer, api_key, definition=False)
    elif len(words) == 1 and (base_url or backend.lower().endswith(_SUFFIXES)):
        fields = _definition(backend, base_url) | _outbound(bearer, api_key, definition=True)
    elif len(words) > 1 or shutil.which(backend) is not None:
        if bearer is not None or api_key is not None:
            raise AgentDoubleError("A command gets its credentials as variables: --env NAME.")
        fields = _command(words, variables(environment))
    else:
        raise AgentDoubleError(
            f"{backend!r} is not a backend. Give the URL of an MCP server, a Swagger or OpenAPI "
            "definition (.json or .yaml), or after -- a command."
        )
    plane = control.connect(url)
    id_ = plane.call("CreateMCPService", Name=name, **fields)
    access = record(plane.call("GetMCPService", **id_)["MCPService"])
    typer.echo(json.dumps({**id_, **access}) if as_json else json.dumps(access, indent=2))


def _outbound(bearer: str | None, api_key: str | None, *, definition: bool) -> dict[str, Any]:
    authorizer = env.outbound(bearer, api_key, definition=definition)
    return {"OutboundAuthorizerConfiguration": authorizer}


def _definition(file: str, base_url: str | None) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a definition of an HTTP API."""
    where = {"Path": "/", "BackendType": "Custom"}
    if base_url is not None:
        where = located(base_url, "--base-url")
    definition = {"Configuration": env.read("BACKEND", file), "Type": "Swagger"}
    return {
        "ProtocolType": "HTTP",
        "ProtocolConfiguration": {"HttpApiConfiguration": definition},
        **where,
    }


def _command(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a command, which runs in this directory."""
    program, *arguments = words
    server = {
        "command": program,
        "args": arguments,
        "env": dict(environment),
        "cwd": str(Path.cwd()),
    }
    package = {"McpType": "stdio", "RawConfig": json.dumps(server)}
    return {
        "ProtocolType": "MCP",
        "Path": "/",
        "BackendType": "CustomMcp",
        "BackendConfiguration": {"CustomMcpConfiguration": {"PublicPackage": package}},
    }


def located(url: str, argument: str) -> dict[str, Any]:
    """Return the fields with the address of a backend."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not _is_url(url) or not host or "@" in parts.netloc:
        raise AgentDoubleError(
            f"{argument} is an address such as http://HOST:PORT/mcp, without user and password."
        )
    custom = {"Domain": host, "Port": port, "ProtocolType": parts.scheme}
    fields = {name: value for name, value in custom.items() if value is not None}
    return {
        "Path": (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        "BackendType": "Custom",
        "BackendConfiguration": {"CustomConfiguration": fields},
    }


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def show_all(url: str | None, *, as_json: bool) -> None:
    """Print the services."""
    plane = control.connect(url)
    services = list(plane.all("ListMCPServices", "MCPServices"))
    if as_json:
        typer.echo(json.dumps({"MCPServices": services}, indent=2))
        return
    rows = [{**service, "Address": _address(service)} for service in services]
    sessions.show(("MCPServiceId", "Name", "ProtocolType", "Address"), rows)


def delete(name: str, url: str | None, *, as_json: bool) -> None:
    """Delete a service."""
    plane = control.connect(url)
    id_ = _find(plane, name)
    deleted = plane.call("DeleteMCPService", **id_)
    typer.echo(json.dumps(deleted) if as_json else f"{id_['MCPServiceId']} is deleted.")


def record(service: Mapping[str, Any]) -> dict[str, Any]:
    """Return the access record of section 2.5 from the platform's data about a service."""
    keys = service["InboundAuthorizerConfiguration"]["Authorizer"]["KeyAuth"]["ApiKeys"]
    if not keys:
        raise AgentDoubleError(f"The MCP service {service['Name']!r} has no keys.")
    server = {
        "httpUrl": _address(service),
        "headers": {"Authorization": f"Bearer {keys[0]['Key']}"},
    }
    return {"mcpServers": {service["Name"]: server}}


def _address(service: Mapping[str, Any]) -> str:
    networks = service["NetworkConfigurations"]
    return f"{networks[0]['Endpoint']}{service['Path']}" if networks else str(service["Path"])


def _find(plane: ControlPlane, name: str) -> Mapping[str, Any]:
    """Return the id of the service with that name or id, by its field name."""
    for service in plane.all("ListMCPServices", "MCPServices"):
        if name in (service["Name"], service["MCPServiceId"]):
            return {"MCPServiceId": service["MCPServiceId"]}
    raise AgentDoubleError(f"No MCP service {name!r}. See: agentdouble mcp list")


def variables(texts: Sequence[str]) -> dict[str, str]:
    """Return the variables of ``NAME=VALUE`` texts; raise AgentDoubleError.

    ``NAME`` alone takes its value from this environment, so that no command line shows the value.
    """
    env = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator and name not in os.environ:
            raise AgentDoubleError(
                f"--env takes NAME=VALUE, or the NAME of an existing variable, not {text!r}."
            )
        env[name] = value if separator else os.environ[name]
    return env
