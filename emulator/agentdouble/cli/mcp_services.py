"""``agentdouble mcp create | list | delete``: the MCP services of a running double."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer

from agentdouble.cli import control, env, sessions
from agentdouble.cli.control import ControlPlane
from agentdouble.errors import AgentDoubleError

LARGEST = 24 * 1024 * 1024  # bytes of a definition: even as JSON in JSON it fits into a request
_SUFFIXES = (".json", ".yaml", ".yml")


class Kind(Enum):
    """The kind of a backend."""

    SERVER = auto()
    DEFINITION = auto()
    COMMAND = auto()


def kind_of(words: Sequence[str], *, openapi: bool) -> Kind:
    """Return the kind of a backend; raise AgentDoubleError if it is unclear.

    Several words are a command, and so is one that names a program.
    """
    if len(words) > 1:
        return Kind.COMMAND
    (backend,) = words
    if _is_url(backend):
        return Kind.SERVER
    if openapi or backend.lower().endswith(_SUFFIXES):
        return Kind.DEFINITION
    if shutil.which(backend) is not None:
        return Kind.COMMAND
    raise AgentDoubleError(
        f"{backend!r} is no backend: it is the URL of an MCP server, a Swagger or OpenAPI "
        "definition (with --openapi whatever it is called), or after -- a command."
    )


def request(backend: str, kind: Kind, base_url: str | None) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a server or a definition."""
    if kind is Kind.SERVER:
        return {"ProtocolType": "MCP", **located(backend, "BACKEND")}
    where = {"Path": "/", "BackendType": "Custom"}
    if base_url is not None:
        where = located(base_url, "--base-url")
    definition = {"Configuration": _text(backend), "Type": "Swagger"}
    return {
        "ProtocolType": "HTTP",
        "ProtocolConfiguration": {"HttpApiConfiguration": definition},
        **where,
    }


def command_request(
    words: Sequence[str], directory: str | None, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a command, whose directory is on this machine."""
    server = {
        "command": words[0],
        "args": [*words[1:]],
        "env": dict(environment),
        "cwd": str(Path(directory or ".").absolute()),
    }
    package = {"McpType": "stdio", "RawConfig": json.dumps(server)}
    return {
        "ProtocolType": "MCP",
        "Path": "/",
        "BackendType": "CustomMcp",
        "BackendConfiguration": {"CustomMcpConfiguration": {"PublicPackage": package}},
    }


def located(url: str, what: str) -> dict[str, Any]:
    """Return the fields with the address of a backend."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not _is_url(url) or not host or "@" in parts.netloc:
        raise AgentDoubleError(
            f"{what} is an address such as http://HOST:PORT/mcp, without user and password."
        )
    custom = {"Domain": host, "Port": port, "ProtocolType": parts.scheme}
    given = {name: value for name, value in custom.items() if value is not None}
    return {
        "Path": (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        "BackendType": "Custom",
        "BackendConfiguration": {"CustomConfiguration": given},
    }


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def _text(source: str) -> str:
    """Return the text of a definition."""
    try:
        with Path(source).open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise AgentDoubleError(f"{source} is larger than {LARGEST // 1024 // 1024} MiB.")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise AgentDoubleError(f"{source} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise AgentDoubleError(f"{source} is no text.") from None


@dataclass(frozen=True)
class Wanted:
    """The options in addition to the backend; keys are given by their sources."""

    name: str
    openapi: bool = False
    base_url: str | None = None
    bearer: str | None = None
    api_key: str | None = None
    key: str | None = None
    directory: str | None = None
    environment: tuple[str, ...] = ()


def create(
    wanted: Wanted,
    words: Sequence[str],
    url: str | None,
    *,
    as_json: bool,
) -> None:
    """Make a service and print its access record.

    ``words`` are a backend, or the words of a command.
    """
    kind = kind_of(words, openapi=wanted.openapi or wanted.base_url is not None)
    if kind is Kind.COMMAND:
        _create_command(wanted, words, url, as_json=as_json)
        return
    if wanted.directory is not None or wanted.environment:
        raise AgentDoubleError("Only a command, after --, takes --directory and --env.")
    (backend,) = words
    definition = kind is Kind.DEFINITION
    fields = {
        **request(backend, kind, wanted.base_url),
        "OutboundAuthorizerConfiguration": env.outbound(
            wanted.bearer, wanted.api_key, definition=definition
        ),
    }
    plane = control.connect(url)
    _print_record(plane, _create(plane, wanted, fields), as_json=as_json)


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


def record(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the access record of section 2.5 from the platform's data about a service."""
    keys = found["InboundAuthorizerConfiguration"]["Authorizer"]["KeyAuth"]["ApiKeys"]
    if not keys:
        raise AgentDoubleError(f"The MCP service {found['Name']!r} has no key left.")
    server = {
        "httpUrl": _address(found),
        "headers": {"Authorization": f"Bearer {keys[0]['Key']}"},
    }
    return {"mcpServers": {found["Name"]: server}}


def _address(found: Mapping[str, Any]) -> str:
    networks = found["NetworkConfigurations"]
    return f"{networks[0]['Endpoint']}{found['Path']}" if networks else str(found["Path"])


def _create(plane: ControlPlane, wanted: Wanted, request: Mapping[str, Any]) -> Mapping[str, Any]:
    inbound = env.inbound(wanted.key)
    return plane.call(
        "CreateMCPService", Name=wanted.name, InboundAuthorizerConfiguration=inbound, **request
    )


def _create_command(
    wanted: Wanted, words: Sequence[str], url: str | None, *, as_json: bool
) -> None:
    if wanted.openapi or wanted.base_url is not None:
        raise AgentDoubleError("A command takes no --openapi and no --base-url.")
    if wanted.bearer is not None or wanted.api_key is not None:
        raise AgentDoubleError("A command gets its credentials as variables: --env NAME.")
    environment = variables(wanted.environment)
    fields = command_request(words, wanted.directory, environment)
    plane = control.connect(url)
    _print_record(plane, _create(plane, wanted, fields), as_json=as_json)


def _print_record(plane: ControlPlane, id_: Mapping[str, Any], *, as_json: bool) -> None:
    found = record(_whole(plane, id_))
    typer.echo(json.dumps({**id_, **found}) if as_json else json.dumps(found, indent=2))


def _whole(plane: ControlPlane, id_: Mapping[str, Any]) -> Mapping[str, Any]:
    whole: Mapping[str, Any] = plane.call("GetMCPService", **id_)["MCPService"]
    return whole


def _find(plane: ControlPlane, name: str) -> Mapping[str, Any]:
    """Return the id of the service with that name or id, by its field name."""
    for service in plane.all("ListMCPServices", "MCPServices"):
        if name in (service["Name"], service["MCPServiceId"]):
            return {"MCPServiceId": service["MCPServiceId"]}
    raise AgentDoubleError(f"There is no MCP service {name!r}. See: agentdouble mcp list")


def variables(texts: Sequence[str]) -> dict[str, str]:
    """Return the variables of ``NAME=VALUE`` texts; raise AgentDoubleError.

    ``NAME`` alone takes its value from this environment, so that no command line shows the value.
    """
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator and name not in os.environ:
            raise AgentDoubleError(
                f"--env takes NAME=VALUE, or the NAME of a variable that there is, not {text!r}."
            )
        found[name] = value if separator else os.environ[name]
    return found
