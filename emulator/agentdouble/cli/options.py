"""Options and tables that several commands share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentdouble.cli import completion
from agentdouble.core.durations import parse
from agentdouble.core.terminal import print_table
from agentdouble.errors import AgentDoubleError

Tls = Annotated[bool, typer.Option("--tls", help="Serve https, with a generated certificate.")]
Agents = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Agents directory of API-server mode (the built-in agents)."),
]
UnknownChoices = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown",
        metavar="ID=NAME",
        help="Choose an alternative of an unknown.",
        autocompletion=completion.unknowns,
    ),
]
Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="profile.toml of a deployment, from doublecheck calibrate (none)."
    ),
]
State = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Keep tools and records: sqlite:///FILE, postgresql://... (memory)."
    ),
]

Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Settings file (agentdouble.toml, if it exists)."),
]

Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="URL of the double or platform (the running double)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


Faults = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Faults to arm: [[faults]] tables, TOML (none)."),
]


def command_group(description: str, examples: str) -> typer.Typer:
    """Return an application of several commands, which shows its help if none is named."""
    return typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help=description, epilog=examples
    )


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    document: Any,
    *,
    none: str,
    as_json: bool,
) -> None:
    """Print a table of these columns, or with ``as_json`` the document.

    ``none`` is what to tell a person if there are no rows.
    """
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    elif rows:
        print_table(columns, rows)
    else:
        typer.echo(none, err=True)


def seconds(text: str) -> float:
    """Return the seconds of a duration such as ``29m58s``; raise AgentDoubleError."""
    try:
        return parse(text).total_seconds()
    except ValueError as error:
        raise AgentDoubleError(str(error)) from None
