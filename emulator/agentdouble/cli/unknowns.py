"""``agentdouble unknowns``: the ledger and what its answers rest on, as a table or as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from agentdouble.core import ledger, profiles, terminal
from agentdouble.core.evidence import Evidence
from agentdouble.core.ledger import Alternative, Ledger, Unknown

_COLUMNS = ("Unknown", "Answer", "Alternatives", "Evidence", "Question")


def show(*, as_json: bool, profile: Path | None = None) -> None:
    """Print every unknown with its answers and their evidence, and count what they rest on.

    A profile's answers are in force, and rest on the deployment that it was measured on.
    """
    in_force = (profiles.EMPTY if profile is None else profiles.read(profile)).make_ledger()
    if as_json:
        documents = [_document(unknown, in_force) for unknown in ledger.unknowns().values()]
        typer.echo(json.dumps(documents, indent=2, default=str))
        return
    if sys.stdout.isatty():
        _print_boxes(in_force)
    else:
        terminal.print_table(_COLUMNS, [_line(it, in_force) for it in ledger.unknowns().values()])
    typer.echo(in_force.summary())


def _print_boxes(in_force: Ledger) -> None:
    table = Table(show_lines=True)
    table.add_column("Unknown", no_wrap=True)
    for column in ("Question", "Answer", "Alternatives", "Evidence"):
        table.add_column(column)
    for unknown in ledger.unknowns().values():
        table.add_row(*_row(unknown, in_force))
    terminal.console().print(table)


def _line(unknown: Unknown, in_force: Ledger) -> dict[str, str]:
    """Return an unknown in short, for a pipe."""
    answer = in_force.answer(unknown.id)
    others = (it.name for it in (unknown.default, *unknown.alternatives) if it is not answer)
    values = (answer.name, ", ".join(others), in_force.rests_on(unknown.id), unknown.question)
    return dict(zip(_COLUMNS, (unknown.id, *values), strict=True))


def _document(unknown: Unknown, in_force: Ledger) -> dict[str, Any]:
    return {
        **asdict(unknown),
        "evidence": [asdict(it) for it in in_force.evidence(unknown.id)],
        "rests_on": in_force.rests_on(unknown.id),
    }


def _row(unknown: Unknown, in_force: Ledger) -> tuple[Text, ...]:
    answer = in_force.answer(unknown.id)
    answers = (unknown.default, *unknown.alternatives)
    others = (_answer(other) for other in answers if other is not answer)
    return (
        Text(unknown.id, style="bold"),
        Text(f"{unknown.question} ({unknown.section})"),
        _answer(answer),
        Text("\n").join(others),
        Text("\n").join(_evidence(it) for it in in_force.evidence(unknown.id)),
    )


def _evidence(evidence: Evidence) -> Text:
    """Return the kind, what it shows, and the package or document; --json has the file, too."""
    source = f" ({evidence.source.partition(':')[0]})" if evidence.source else ""
    return Text.assemble((evidence.label, "bold"), f": {evidence.says}", (source, "dim"))


def _answer(answer: Alternative) -> Text:
    text = Text.assemble((answer.name, "bold"), f": {answer.meaning}")
    return text if answer.built else text.append(" (not built yet)", style="dim")
