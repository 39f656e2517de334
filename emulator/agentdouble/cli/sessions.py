"""``agentdouble session``: the living sessions, their end, and a console on one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agentdouble.cli import connections
from agentdouble.cli.options import Json, Url, command_group, formatted, print_table
from agentdouble.cli.session_console import run_console

Session = Annotated[str, typer.Argument(help="SessionId (s-...) or UserSessionId.")]
Tool = Annotated[str | None, typer.Option(help="Id of the tool (all tools).")]

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble session delete s-0123456789abcdef0123

  agentdouble session attach my_agent_ann_s1

  echo 'print(x)' | agentdouble session attach s-0123456789abcdef0123

[bold]Keys[/bold]  Ctrl-C interrupts the code, Ctrl-D leaves; the session goes on.
""")

session_app = command_group("List, end and use the sessions of a running double.", _EXAMPLES)


@session_app.command("list", epilog=_EXAMPLES)
def list_sessions(tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """List the living sessions, and name a sleeping one."""
    plane = connections.connect(url)
    sessions = plane.sessions(tool)
    columns = ("SessionId", "UserSessionId", "ToolId", "Status", "ExpireAt")
    print_table(columns, sessions, sessions, as_json=as_json)
    asleep = () if as_json else plane.asleep(sessions, tool)
    if asleep:
        ids = " ".join(f"{key}={asleep[0][key]}" for key in ("ToolId", "SnapshotId"))
        typer.echo(
            f"{len(asleep)} asleep. To wake the one that expired last, {asleep[0]['SessionId']}:\n"
            f"  agentdouble call ResumeSessionFromSnapshot {ids}"
        )


@session_app.command(epilog=_EXAMPLES)
def delete(session: Session, tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """End a session now."""
    plane = connections.connect(url)
    living = plane.session(session, tool)
    ids = {key: living[key] for key in ("ToolId", "SessionId")}
    deleted = plane.call("DeleteSession", **ids)
    typer.echo(json.dumps(deleted) if as_json else f"{deleted['SessionId']} is deleted.")


@session_app.command(epilog=_EXAMPLES)
def attach(
    session: Session,
    tool: Tool = None,
    language: Annotated[str, typer.Option(help="The language of the code.")] = "python3",
    timeout: Annotated[int, typer.Option(help="Longest run of a cell, in seconds.")] = 300,
    url: Url = None,
) -> None:
    """Run code in a living session's kernel, typed or from a pipe."""
    raise typer.Exit(run_console(session, tool, language, timeout, url))
