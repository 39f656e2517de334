"""``agentdouble tool create | list | delete``: the sandbox tools of a running double."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import typer

from agentdouble.cli import control, tables
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
    """Print the tools; if ``name`` is given, only those whose name contains it."""
    filters = [{"NameContains": "Name", "Values": [name]}] if name else None
    tools = list(control.connect(url).all("ListTools", "Tools", Filters=filters))
    if as_json:
        typer.echo(json.dumps(tools, indent=2))
        return
    columns = ("ToolId", "Name", "Status", "CreatedAt", "Description")
    tables.show(columns, tools)


def delete(tool_id: str, url: str | None, *, as_json: bool) -> None:
    """Delete a tool and end its sessions."""
    gone = control.connect(url).call("DeleteTool", ToolId=tool_id)
    typer.echo(json.dumps(gone) if as_json else f"{gone['ToolId']} is deleted.")


def variables(texts: Sequence[str]) -> list[dict[str, str]]:
    """Return ``NAME=VALUE`` texts as the platform's Envs; raise AgentDoubleError.

    ``NAME`` alone takes its value from this environment, so that no command line shows the value.
    """
    return [_variable(text) for text in texts]


def _variable(text: str) -> dict[str, str]:
    name, separator, value = text.partition("=")
    if not separator and name not in os.environ:
        raise AgentDoubleError(
            f"--env takes NAME=VALUE, or the NAME of a variable that there is, not {text!r}."
        )
    if not separator:
        value = os.environ[name]
    return {"Key": name, "Value": value}
