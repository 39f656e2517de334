"""``agentdouble mcp``: the options of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import Json, Url, formatted

Name = Annotated[str, typer.Argument(help="Its name, or its id (mcp-...).")]

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble mcp create weather http://localhost:9000/mcp   an MCP server

  agentdouble mcp create pets pets.json                      a definition

  agentdouble mcp create fs -- npx -y @modelcontextprotocol/server-filesystem . '$HOME'

  agentdouble mcp list

  agentdouble mcp delete weather
""")

_SECRETS = formatted("""
[bold]Keys[/bold]  are read from the environment or a file, because other users can read command
lines.

  agentdouble mcp create weather https://host/mcp --bearer env:TOKEN

  agentdouble mcp create pets pets.json --api-key X-Key=file:key.txt

[bold]Exit codes[/bold]  0: created, 2: refused.
""")

mcp_app = typer.Typer(
    no_args_is_help=True,
    help="MCP services of a running double: create, list and delete them.",
    epilog=_EXAMPLES,
)


@mcp_app.command(epilog=_EXAMPLES + _SECRETS)
def create(
    name: Annotated[str, typer.Argument(help="It answers at /mcp/NAME.")],
    backend: Annotated[
        list[str],
        typer.Argument(
            help="URL of an MCP server; file of a Swagger or OpenAPI definition; "
            "after --, a command that speaks MCP over its standard input and output."
        ),
    ],
    base_url: Annotated[
        str | None, typer.Option(help="URL of the HTTP API, if it differs from the definition's.")
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
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=VALUE]", help="A variable for a command's environment."),
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a service and print its access record."""
    from agentdouble.cli import mcp_services

    mcp_services.create(
        name,
        backend,
        url,
        base_url=base_url,
        bearer=bearer,
        api_key=api_key,
        environment=env or (),
        as_json=as_json,
    )


@mcp_app.command("list", epilog=_EXAMPLES)
def list_(url: Url = None, as_json: Json = False) -> None:
    """List the services."""
    from agentdouble.cli import mcp_services

    mcp_services.show_all(url, as_json=as_json)


@mcp_app.command(epilog=_EXAMPLES)
def delete(name: Name, url: Url = None, as_json: Json = False) -> None:
    """Delete a service with its sessions."""
    from agentdouble.cli import mcp_services

    mcp_services.delete(name, url, as_json=as_json)
