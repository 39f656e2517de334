"""``agentdouble session snapshot | snapshots | resume``: snapshots of a running double's sessions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

from agentdouble.cli import control, tables
from agentdouble.cli.control import ControlPlane
from agentdouble.errors import AgentDoubleError

_COLUMNS = ("SnapshotId", "UserSessionId", "SessionId", "Status", "CreatedAt", "Reason")


def take(name: str, tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """Take a snapshot of a session; print its id, and what is not in it."""
    plane = control.connect(url)
    session = plane.session(name, tool_id)
    tool = session["ToolId"]
    made = plane.call("CreateSessionSnapshot", ToolId=tool, SessionId=session["SessionId"])
    got = plane.call("GetSessionSnapshot", ToolId=tool, SnapshotId=made["SnapshotId"])
    snapshot = got["Snapshot"]
    if as_json:
        typer.echo(json.dumps(snapshot))
        return
    typer.echo(snapshot["SnapshotId"])
    if snapshot.get("Reason"):
        typer.echo(snapshot["Reason"], err=True)  # a program reads the id alone


def show_all(tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """Print the snapshots of a tool's sessions, or of every tool's."""
    found = _all(control.connect(url), tool_id)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    tables.show(_COLUMNS, found)


def delete(id_: str, tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """Delete a snapshot; what was made of it lives on."""
    plane = control.connect(url)
    gone = plane.call("DeleteSessionSnapshot", **_named(plane, id_, tool_id))
    typer.echo(json.dumps(gone) if as_json else f"{id_} is deleted.")


def resume(
    id_: str, tool_id: str | None, url: str | None, *, new: bool, ttl_s: int | None, as_json: bool
) -> None:
    """Return a session to a snapshot, or make another session of it."""
    plane = control.connect(url)
    named = _named(plane, id_, tool_id)
    made = plane.call("ResumeSessionFromSnapshot", **named, CreateNewInstance=new, Ttl=ttl_s)
    session = plane.session(made["SessionId"], named["ToolId"])
    if as_json:
        typer.echo(json.dumps(session))
        return
    typer.echo(f"{session['SessionId']} ({session['UserSessionId']}) is as in {id_}.")


def _all(plane: ControlPlane, tool_id: str | None) -> list[Mapping[str, Any]]:
    tools = [tool_id] if tool_id else [one["ToolId"] for one in plane.all("ListTools", "Tools")]
    return [
        {"ToolId": tool, **one}
        for tool in tools
        for one in plane.all("ListSessionSnapshots", "Snapshots", ToolId=tool)
    ]


def _named(plane: ControlPlane, id_: str, tool_id: str | None) -> dict[str, str]:
    """Return the fields that name a snapshot to an action; raise AgentDoubleError."""
    for one in _all(plane, tool_id):
        if one["SnapshotId"] == id_:
            return {"ToolId": one["ToolId"], "SnapshotId": id_}
    raise AgentDoubleError(f"There is no snapshot {id_!r}. See: agentdouble session snapshots")
