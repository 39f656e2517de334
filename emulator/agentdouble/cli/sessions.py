"""``agentdouble session``: the living sessions, their end, and a console on one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agentdouble.cli import completion, connections
from agentdouble.cli.options import Json, Url, command_group, print_rows
from agentdouble.cli.session_console import run_console
from agentdouble.core.terminal import help_text

Session = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="SessionId (s-...) or UserSessionId.",
        autocompletion=completion.sessions,
    ),
]
Tool = Annotated[str | None, typer.Option(metavar="TOOL", help="Id of the tool (all tools).")]

_EXAMPLES = help_text("""
Examples:
  agentdouble session list
  agentdouble session delete s-0123456789abcdef0123
  agentdouble session attach my_agent_ann_s1
  echo 'print(x)' | agentdouble session attach s-0123456789abcdef0123

In attach, Ctrl-C interrupts the code and Ctrl-D leaves; the session goes on.

Exit codes:
  0  done
  1  code from a pipe failed
  2  there is no double, or it refused
""")

session_app = command_group("List, end and use the sessions of a running double.", _EXAMPLES)


@session_app.command("list", epilog=_EXAMPLES)
def list_sessions(tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """List the living sessions, and name a sleeping one."""
    plane = connections.connect(url)
    sessions = plane.sessions(tool)
    columns = ("SessionId", "UserSessionId", "ToolId", "Status", "ExpireAt")
    none = "No session lives. The first code of a user's session starts it."
    print_rows(columns, sessions, sessions, none=none, as_json=as_json)
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
    language: Annotated[
        str, typer.Option(metavar="NAME", help="The language of the code.")
    ] = "python3",
    timeout: Annotated[
        int, typer.Option(metavar="N", help="Longest run of a cell, in seconds.")
    ] = 300,
    url: Url = None,
) -> None:
    """Run code in a living session's kernel, typed or from a pipe."""
    raise typer.Exit(run_console(session, tool, language, timeout, url))
