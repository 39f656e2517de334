"""``agentdouble session list | delete``: the living sessions of a running double."""

from __future__ import annotations

import json

import typer

from agentdouble.cli import control, tables


def show_all(tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """Print the living sessions of a tool or of every tool."""
    sessions = control.connect(url).sessions(tool_id)
    if as_json:
        typer.echo(json.dumps(sessions, indent=2))
        return
    columns = ("SessionId", "UserSessionId", "ToolId", "Status", "ExpireAt")
    tables.show(columns, sessions)


def delete(name: str, tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """End a session; return when its processes have ended."""
    plane = control.connect(url)
    session = plane.session(name, tool_id)
    named = {key: session[key] for key in ("ToolId", "SessionId")}
    gone = plane.call("DeleteSession", **named)
    typer.echo(json.dumps(gone) if as_json else f"{gone['SessionId']} is deleted.")
