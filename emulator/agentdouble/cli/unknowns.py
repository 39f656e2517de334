"""``agentdouble unknowns``: the ledger, as a table or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentdouble.core import ledger
from agentdouble.core.ledger import Alternative, Unknown


def show(*, as_json: bool) -> None:
    """Print every unknown with its default and its alternatives."""
    if as_json:
        typer.echo(json.dumps([asdict(u) for u in ledger.unknowns().values()], indent=2))
        return
    table = Table(show_lines=True)
    table.add_column("Unknown", no_wrap=True)
    for column in ("Question", "Default", "Alternatives"):
        table.add_column(column)
    for unknown in ledger.unknowns().values():
        table.add_row(*_row(unknown))
    Console().print(table)


def _row(unknown: Unknown) -> tuple[Text, Text, Text, Text]:
    alternatives = Text("\n").join(_answer(answer) for answer in unknown.alternatives)
    return (
        Text(unknown.id, style="bold"),
        Text(f"{unknown.question} ({unknown.section})"),
        _answer(unknown.default),
        alternatives,
    )


def _answer(answer: Alternative) -> Text:
    text = Text.assemble((answer.name, "bold"), f": {answer.meaning}")
    return text if answer.built else text.append(" (not built yet)", style="dim")
