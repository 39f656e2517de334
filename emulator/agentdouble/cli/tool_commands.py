"""``agentdouble tool``: the options of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import formatted

Url = Annotated[
    str | None, typer.Option(help="Which double or platform; the running double if absent.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble tool create research --env LEVEL=debug

  agentdouble tool list --json

  agentdouble tool delete t-0123456789abcdef0123
""")

tool_app = typer.Typer(
    no_args_is_help=True,
    help="Sandbox tools of a running double: make, list and delete them.",
    epilog=_EXAMPLES,
)


@tool_app.command(epilog=_EXAMPLES)
def create(
    name: Annotated[str, typer.Argument(help="Its name; no two tools have the same.")],
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=VALUE]", help="A variable of its sessions' environment."),
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a tool and print its id."""
    from agentdouble.cli import tools

    tools.create(name, description, tuple(env or ()), url, as_json=as_json)


@tool_app.command("list", epilog=_EXAMPLES)
def list_(
    name: Annotated[str | None, typer.Option(help="Only those with this in their name.")] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List the tools."""
    from agentdouble.cli import tools

    tools.show(name, url, as_json=as_json)


@tool_app.command(epilog=_EXAMPLES)
def delete(
    tool_id: Annotated[str, typer.Argument(help="Its id, t-...")],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a tool and end its sessions."""
    from agentdouble.cli import tools

    tools.delete(tool_id, url, as_json=as_json)
