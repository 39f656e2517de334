"""``agentdouble what-if``: a request of a running double, asked under another answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

from agentdouble.cli import control, tables
from agentdouble.errors import AgentDoubleError

_WHAT_IF = "/_emulator/what-if"


def show(entry: int, answer: str, url: str | None, *, as_json: bool) -> None:
    """Print what differs."""
    unknown, separator, name = answer.partition("=")
    if not (unknown and separator and name):
        raise AgentDoubleError(f"{answer!r} is no UNKNOWN=ANSWER, such as U-EXEC-SUCCESS=true.")
    body = {"entry": entry, "unknown": unknown, "answer": name}
    found = control.connect(url).own(_WHAT_IF, {}, method="POST", body=body).json()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    before, after = found["in_force"]["answer"], found["other"]["answer"]
    if found["differences"]:
        rows = [_row(one, before, after) for one in found["differences"]]
        tables.show(("Where", before, after), rows)
    else:
        typer.echo(f"{after} is answered as {before}, but for ids and times.")
    if found["asked_before"]:
        typer.echo(f"Asked before it: {', '.join(map(str, found['asked_before']))}.")
    for note in found["notes"]:
        typer.echo(note)


def _row(one: Mapping[str, Any], before: str, after: str) -> Mapping[str, str]:
    values = {name: json.dumps(one[name]) if name in one else "" for name in ("in_force", "other")}
    return {"Where": one["path"], before: values["in_force"], after: values["other"]}
