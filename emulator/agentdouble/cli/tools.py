"""``agentdouble tool create | list | delete``: the sandbox tools of a running double."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from agentdouble.cli import control
from agentdouble.errors import AgentDoubleError


def create(
    name: str,
    description: str | None,
    given: Sequence[str],
    url: str | None,
    *,
    as_json: bool,
) -> None:
    """Make a tool and print its id."""
    made = control.connect(url).call(
        "CreateTool",
        Name=name,
        ToolType="CodeEnv",
        Description=description,
        Envs=variables(given) or None,
    )
    typer.echo(json.dumps(made) if as_json else made["ToolId"])


def show(name: str | None, url: str | None, *, as_json: bool) -> None:
    """Print the tools, those whose name has ``name`` in it if it is given."""
    filters = [{"NameContains": "Name", "Values": [name]}] if name else None
    tools = list(control.connect(url).all("ListTools", "Tools", Filters=filters))
    if as_json:
        typer.echo(json.dumps(tools, indent=2))
        return
    columns = ("ToolId", "Name", "Status", "CreatedAt", "Description")
    Console(highlight=False).print(table(columns, tools))


def delete(tool_id: str, url: str | None, *, as_json: bool) -> None:
    """Delete a tool and end its sessions."""
    gone = control.connect(url).call("DeleteTool", ToolId=tool_id)
    typer.echo(json.dumps(gone) if as_json else f"{gone['ToolId']} is deleted.")


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of those columns; nothing in it is cut, so that it can be copied."""
    made = Table()
    for index, column in enumerate(columns):
        made.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        made.add_row(*(str(row.get(column, "")) for column in columns))
    return made


def variables(texts: Sequence[str]) -> list[dict[str, str]]:
    """Return ``NAME=VALUE`` texts as the platform's Envs; raise AgentDoubleError."""
    return [_variable(text) for text in texts]


def _variable(text: str) -> dict[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise AgentDoubleError(f"--env takes NAME=VALUE, not {text!r}.")
    return {"Key": name, "Value": value}
