"""``agentdouble session list | delete``: the living sessions of a running double."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from agentdouble.cli import control
from agentdouble.errors import AgentDoubleError

_UNBOUNDED = 10_000  # columns


def show(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of these columns with complete values, so that they can be copied.

    Outside a terminal each row is one line.
    """
    table = Table()
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    width = None if sys.stdout.isatty() else _UNBOUNDED
    Console(highlight=False, width=width).print(table)


def show_all(tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """Print the living sessions of a tool or of every tool."""
    sessions = control.connect(url).sessions(tool_id)
    if as_json:
        typer.echo(json.dumps(sessions, indent=2))
        return
    columns = ("SessionId", "UserSessionId", "ToolId", "Status", "ExpireAt")
    show(columns, sessions)


def delete(name: str, tool_id: str | None, url: str | None, *, as_json: bool) -> None:
    """End a session; return when its processes have ended."""
    plane = control.connect(url)
    session = plane.session(name, tool_id)
    named = {key: session[key] for key in ("ToolId", "SessionId")}
    deleted = plane.call("DeleteSession", **named)
    typer.echo(json.dumps(deleted) if as_json else f"{deleted['SessionId']} is deleted.")


_CLOCK = "/_emulator/clock"
_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def show_clock(url: str | None, *, as_json: bool) -> None:
    """Print the time."""
    _tell(control.connect(url).admin(_CLOCK, {}).json(), as_json=as_json)


def advance(by: str, url: str | None, *, as_json: bool) -> None:
    """Move the time and print it."""
    _change({"advance_s": _seconds(by)}, url, as_json=as_json)


def freeze(url: str | None, *, frozen: bool, as_json: bool) -> None:
    """Stop or resume the time, and print it."""
    _change({"frozen": frozen}, url, as_json=as_json)


def _change(body: Mapping[str, Any], url: str | None, *, as_json: bool) -> None:
    answer = control.connect(url).admin(_CLOCK, {}, method="POST", body=body)
    _tell(answer.json(), as_json=as_json)


def _tell(time: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(time))
        return
    now = dt.datetime.fromisoformat(time["now"])
    moved = dt.timedelta(seconds=time["offset_s"])
    ahead = f", {moved} ahead of the wall clock" if moved else ""
    typer.echo(f"{now:%Y-%m-%d %H:%M:%S} UTC{ahead}{', frozen' * time['frozen']}")


def _seconds(text: str) -> float:
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text, re.ASCII)
    if not parts or "".join(map("".join, parts)) != text:
        raise AgentDoubleError(f"The time must be like 90s, 29m58s, 1h or 2d, not {text[:40]!r}.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
