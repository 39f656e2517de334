"""Options and tables that several commands share."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentdouble.errors import AgentDoubleError

# only on a terminal, because rich is slow to import
MARKUP: Literal["rich"] | None = "rich" if sys.stdout.isatty() else None
_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_UNBOUNDED = 10_000  # columns
PLAIN_WIDTH = None if MARKUP else 110  # columns, enough for one sentence per command

Tls = Annotated[bool, typer.Option("--tls", help="Serve https, with a generated certificate.")]
Agents = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Agents directory of API-server mode (the built-in agents)."),
]
UnknownChoices = Annotated[
    list[str] | None,
    typer.Option("--unknown", metavar="ID=NAME", help="Choose an alternative of an unknown."),
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
    str | None, typer.Option(help="URL of the double or platform (the running double).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def formatted(text: str) -> str:
    """Return a help text with its markup on a terminal, else as plain lines."""
    if MARKUP:
        return text
    bare = re.sub(r"\[/?bold\]", "", text).replace("\\[", "[")
    return "".join(f"\b\n{paragraph}\n\n" for paragraph in bare.strip("\n").split("\n\n"))


Faults = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help=formatted(r"Faults to arm: [\[faults]] tables, TOML (none).")
    ),
]


def command_group(description: str, examples: str) -> typer.Typer:
    """Return an application of several commands, which shows its help if none is named."""
    return typer.Typer(no_args_is_help=True, help=description, epilog=examples)


def print_table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], document: Any, *, as_json: bool
) -> None:
    """Print a table of these columns with complete values, so that they can be copied.

    Outside a terminal each row is one line. With ``as_json``, print the document instead.
    """
    if as_json:
        typer.echo(json.dumps(document, indent=2))
        return
    from rich import console, table  # slow: 0.1 s

    content = table.Table()
    for index, column in enumerate(columns):
        content.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        content.add_row(*(str(row.get(column, "")) for column in columns))
    width = None if sys.stdout.isatty() else _UNBOUNDED
    console.Console(highlight=False, width=width).print(content)


def seconds(text: str) -> float:
    """Return the seconds of a duration such as ``29m58s``; raise AgentDoubleError."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text, re.ASCII)
    if not parts or "".join(map("".join, parts)) != text:
        raise AgentDoubleError(f"The time must be like 90s, 29m58s, 1h or 2d, not {text[:40]!r}.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
