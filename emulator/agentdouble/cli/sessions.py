"""``agentdouble session list | show | destroy``: the living sessions of a running double."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentdouble.cli import control, tables

_LOG_LINES = 1000


def show_all(tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """Print the living sessions of a tool or of every tool."""
    sessions = control.connect(url).sessions(tool_id)
    if as_json:
        typer.echo(json.dumps(sessions, indent=2))
        return
    columns = ("SessionId", "UserSessionId", "ToolId", "Status", "ExpireAt")
    tables.show(columns, sessions)


def show(name: str, tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """Print one session and its log."""
    plane = control.connect(url)
    session = plane.session(name, tool_id)
    asked = {key: session[key] for key in ("ToolId", "SessionId")}
    log = plane.call("GetSessionLogs", **asked, Limit=_LOG_LINES)["Logs"]
    if as_json:
        typer.echo(json.dumps({**session, "Logs": log}, indent=2))
        return
    facts = Table.grid(padding=(0, 2))
    for key, value in session.items():
        facts.add_row(Text(key, style="bold"), Text(str(value), overflow="fold"))
    console = Console(highlight=False)
    console.print(facts)
    console.print()
    console.print(Text(log.rstrip("\n"), overflow="fold"))


def destroy(name: str, tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """End a session; return when its processes have ended."""
    plane = control.connect(url)
    session = plane.session(name, tool_id)
    asked = {key: session[key] for key in ("ToolId", "SessionId")}
    gone = plane.call("DeleteSession", **asked)
    typer.echo(json.dumps(gone) if as_json else f"{gone['SessionId']} is destroyed.")
