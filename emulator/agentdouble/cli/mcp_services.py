"""``agentdouble mcp create | list | delete``: the MCP services of a running double."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from agentdouble.cli import control, credentials, mcp_backends, tables
from agentdouble.cli.control import ControlPlane
from agentdouble.cli.mcp_backends import Kind
from agentdouble.errors import AgentDoubleError


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
    kind = mcp_backends.kind_of(words, openapi=wanted.openapi or wanted.base_url is not None)
    if kind is Kind.COMMAND:
        _create_command(wanted, words, url, as_json=as_json)
        return
    if wanted.directory is not None or wanted.environment:
        raise AgentDoubleError("Only a command, after --, takes --directory and --env.")
    (backend,) = words
    definition = kind is Kind.DEFINITION
    request = {
        **mcp_backends.request(backend, kind, wanted.base_url),
        "OutboundAuthorizerConfiguration": credentials.outbound(
            wanted.bearer, wanted.api_key, definition=definition
        ),
    }
    plane = control.connect(url)
    _print_record(plane, _create(plane, wanted, request), as_json=as_json)


def show_all(url: str | None, *, as_json: bool) -> None:
    """Print the services."""
    plane = control.connect(url)
    services = list(plane.all("ListMCPServices", "MCPServices"))
    if as_json:
        typer.echo(json.dumps({"MCPServices": services}, indent=2))
        return
    rows = [{**service, "Address": _address(service)} for service in services]
    tables.show(("MCPServiceId", "Name", "ProtocolType", "Address"), rows)


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
    inbound = credentials.inbound(wanted.key)
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
    request = mcp_backends.command_request(words, wanted.directory, environment)
    plane = control.connect(url)
    _print_record(plane, _create(plane, wanted, request), as_json=as_json)


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
