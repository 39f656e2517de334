"""``agentdouble mcp create | list | show | delete``: the MCP services of a running double."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from agentdouble import __version__
from agentdouble.cli import completion
from agentdouble.cli.connections import connect
from agentdouble.cli.options import Json, Url, command_group, print_rows
from agentdouble.cli.secret_options import outbound, read
from agentdouble.core.terminal import console, help_text
from agentdouble.errors import AgentDoubleError

if TYPE_CHECKING:
    from agentdouble.cli.control import ControlPlaneClient

_SUFFIXES = (".json", ".yaml", ".yml")

# A client's first message, of the newest version with sessions.
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "agentdouble", "version": __version__},
    },
}
_ACCEPTED, _SESSION = "application/json, text/event-stream", "mcp-session-id"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", sys.prefix, sys.base_prefix)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name or id (mcp-...) of the service.",
        autocompletion=completion.services,
    ),
]

_EXAMPLES = help_text("""
Examples:
  agentdouble mcp create weather http://localhost:9000/mcp   an MCP server
  agentdouble mcp create pets pets.json                      a definition
  agentdouble mcp create time -- uvx mcp-server-time         a command
  agentdouble mcp create mine --directory ~/servers -- python server.py
  agentdouble mcp list
  agentdouble mcp show weather                               its access record
  agentdouble mcp delete weather

Exit codes:
  0  done
  2  refused, or the command of a service does not start
""")

_SECRETS = help_text("""
Keys are read from the environment or a file, because other users can read
command lines:
  agentdouble mcp create weather https://host/mcp --bearer env:TOKEN
  agentdouble mcp create pets pets.json --api-key X-Key=file:key.txt
  agentdouble mcp create crm crm.yaml --basic env:USER_AND_PASSWORD
""")

mcp_app = command_group(
    "Create, list, show and delete MCP services of a running double.", _EXAMPLES
)


@mcp_app.command(epilog=f"{_EXAMPLES}\n\n{_SECRETS}")
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the service, which is at /mcp/NAME.")
    ],
    backend: Annotated[
        list[str],
        typer.Argument(
            metavar="BACKEND",
            help="URL of an MCP server; file of a Swagger or OpenAPI definition; "
            "after --, a command that speaks MCP over its standard input and output.",
        ),
    ],
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="URL of the HTTP API, if it differs from the definition's."
        ),
    ] = None,
    bearer: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Token for the backend: env:NAME or file:PATH."),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="[HEADER=]SOURCE",
            help="Key for the backend, in X-API-Key or where the definition has it.",
        ),
    ] = None,
    basic: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE", help="user:password for the backend: env:NAME or file:PATH."
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=VALUE]", help="A variable for a command's environment."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Directory that a command runs in and can read (the current one)."
        ),
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a service and print its access record.

    Its backend is tried once. A command that does not start creates no service. An MCP server or an
    API that cannot be reached is a warning, because it may start later.
    """
    first, *others = backend
    ran_in: Path | None = None
    if not others and _is_url(first):
        fields = {"ProtocolType": "MCP", **located(first, "BACKEND")}
        fields |= _outbound(bearer, api_key, basic, definition=False)
    elif not others and (base_url or first.lower().endswith(_SUFFIXES)):
        fields = _definition(first, base_url)
        fields |= _outbound(bearer, api_key, basic, definition=True)
    elif others or shutil.which(first) is not None:
        if (bearer, api_key, basic) != (None, None, None):
            raise AgentDoubleError("A command gets its credentials as variables: --env NAME.")
        ran_in = (directory or Path.cwd()).absolute()
        fields = _command(backend, variables(env or ()), ran_in)
    else:
        raise AgentDoubleError(
            f"{first!r} is not a backend. Give the URL of an MCP server, a Swagger or OpenAPI "
            "definition (.json or .yaml), or after -- a command."
        )
    plane = connect(url)
    id_ = plane.call("CreateMCPService", Name=name, **fields)
    access = record(plane.call("GetMCPService", **id_)["MCPService"])
    if fields["ProtocolType"] == "HTTP":
        for warning in plane.admin(f"/_emulator/mcp-services/{name}/warnings", {}).json():
            typer.echo(f"Warning: {warning}{_remedy(warning)}", err=True)
    else:
        reason = _trial(plane, name, access["mcpServers"][name])
        if reason is not None and ran_in is not None:
            plane.call("DeleteMCPService", **id_)
            raise AgentDoubleError(
                f"The MCP service {name!r} was not created: {reason}{_cure(backend, ran_in)}"
            )
        if reason is not None:
            typer.echo(f"Warning: {reason}", err=True)
    typer.echo(json.dumps({**id_, **access}) if as_json else json.dumps(access, indent=2))


@mcp_app.command("list", epilog=_EXAMPLES)
def list_(url: Url = None, as_json: Json = False) -> None:
    """List the services."""
    plane = connect(url)
    services = list(plane.all("ListMCPServices", "MCPServices"))
    rows = [{**service, "Address": _address(service)} for service in services]
    columns = ("MCPServiceId", "Name", "ProtocolType", "Address")
    none = "There is no MCP service. Create one: agentdouble mcp create NAME BACKEND"
    print_rows(columns, rows, {"MCPServices": services}, none=none, as_json=as_json)


@mcp_app.command(epilog=_EXAMPLES)
def show(name: Name, url: Url = None, as_json: Json = False) -> None:
    """Print the access record of a service, with its key."""
    plane = connect(url)
    id_ = _find(plane, name)
    access = record(plane.call("GetMCPService", **id_)["MCPService"])
    typer.echo(json.dumps({**id_, **access}) if as_json else json.dumps(access, indent=2))


@mcp_app.command(epilog=_EXAMPLES)
def delete(name: Name, url: Url = None, as_json: Json = False) -> None:
    """Delete a service with its sessions."""
    plane = connect(url)
    id_ = _find(plane, name)
    deleted = plane.call("DeleteMCPService", **id_)
    typer.echo(json.dumps(deleted) if as_json else f"{id_['MCPServiceId']} is deleted.")


def _remedy(warning: str) -> str:
    """Return the options for a credential that a warning misses, after a space, or nothing."""
    return " See --api-key, --bearer and --basic." if "need a credential" in warning else ""


def _outbound(
    bearer: str | None, api_key: str | None, basic: str | None, *, definition: bool
) -> dict[str, Any]:
    authorizer = outbound(bearer, api_key, basic, definition=definition)
    return {"OutboundAuthorizerConfiguration": authorizer}


def _definition(file: str, base_url: str | None) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a definition of an HTTP API."""
    where = {"Path": "/", "BackendType": "Custom"}
    if base_url is not None:
        where = located(base_url, "--base-url", "http://HOST:PORT/v1")
    definition = {"Configuration": read("BACKEND", file), "Type": "Swagger"}
    return {
        "ProtocolType": "HTTP",
        "ProtocolConfiguration": {"HttpApiConfiguration": definition},
        **where,
    }


def _trial(plane: ControlPlaneClient, name: str, server: Mapping[str, Any]) -> str | None:
    """Open a session with a service and end it; return why that fails."""
    from httpx_sse import EventSource  # slow: httpx, 0.1 s

    url, headers = server["httpUrl"], {**server["headers"], "Accept": _ACCEPTED}
    with console(stderr=True).status("Trying the backend once"):
        answer = plane.send("POST", url, headers, _INITIALIZE)
    if answer.headers["content-type"].startswith("text/event-stream"):
        message = [event.json() for event in EventSource(answer).iter_sse() if event.data][-1]
    else:
        message = answer.json()
    if _SESSION in answer.headers:
        plane.send("DELETE", url, {**headers, _SESSION: answer.headers[_SESSION]})
    if "error" not in message:
        return None
    log = map(json.loads, plane.admin(f"/_emulator/mcp-services/{name}/logs", {}).iter_lines())
    printed = [f"  {line['text']}" for line in log if line["stream"] != "double"]
    reason = message["error"]["message"].partition(" What it printed:")[0]
    return "\n".join([f"{reason} It printed:", *printed] if printed else [reason])


def _cure(words: Sequence[str], directory: Path) -> str:
    """Return the remedy if a command names a file outside its directory, or an empty string."""
    for word in words:
        path = Path(os.path.normpath(directory / word))
        system = any(path.is_relative_to(root) for root in _SYSTEM)
        if path.exists() and not path.is_relative_to(directory) and not system:
            return (
                f"\n{path} exists, but is outside of {directory}, the only directory that the command "
                f"can read: use --directory {path if path.is_dir() else path.parent}"
            )
    return ""


def _command(
    words: Sequence[str], environment: Mapping[str, str], directory: Path
) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a command, which runs in a directory."""
    program, *arguments = words
    server = {
        "command": program,
        "args": arguments,
        "env": dict(environment),
        "cwd": str(directory),
    }
    package = {"McpType": "stdio", "RawConfig": json.dumps(server)}
    return {
        "ProtocolType": "MCP",
        "Path": "/",
        "BackendType": "CustomMcp",
        "BackendConfiguration": {"CustomMcpConfiguration": {"PublicPackage": package}},
    }


def located(url: str, argument: str, example: str = "http://HOST:PORT/mcp") -> dict[str, Any]:
    """Return the fields with the address of a backend; a refusal shows an ``example``."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not _is_url(url) or not host or "@" in parts.netloc:
        raise AgentDoubleError(
            f"{argument} is an address such as {example}, without user and password."
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


def _find(plane: ControlPlaneClient, name: str) -> Mapping[str, Any]:
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
