"""``agentdouble session``: the options of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import Json, Url, formatted

Session = Annotated[str, typer.Argument(help="Its SessionId (s-...) or its UserSessionId.")]
Tool = Annotated[str | None, typer.Option(help="The tool's id; every tool if absent.")]

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble session list --tool t-sandbox

  agentdouble session delete s-0123456789abcdef0123

  agentdouble session attach my_agent_ann_s1

  echo 'print(x)' | agentdouble session attach s-0123456789abcdef0123

[bold]Keys[/bold]  Ctrl-C interrupts the code, Ctrl-D leaves; the session lives on.
""")

session_app = typer.Typer(
    no_args_is_help=True,
    help="Living sessions of a running double.",
    epilog=_EXAMPLES,
)


@session_app.command("list", epilog=_EXAMPLES)
def list_(tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """List the living sessions."""
    from agentdouble.cli import sessions

    sessions.show_all(tool, url, as_json=as_json)


@session_app.command(epilog=_EXAMPLES)
def delete(session: Session, tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """End a session now."""
    from agentdouble.cli import sessions

    sessions.delete(session, tool, url, as_json=as_json)


@session_app.command(epilog=_EXAMPLES)
def attach(
    session: Session,
    tool: Tool = None,
    language: Annotated[str, typer.Option(help="The language of the code.")] = "python3",
    timeout: Annotated[int, typer.Option(help="Seconds that a cell may take.")] = 300,
    url: Url = None,
) -> None:
    """Type code into a living session's kernel; or pipe it in."""
    from agentdouble.cli import attach as console

    raise typer.Exit(console.attach(session, tool, language, timeout, url))
