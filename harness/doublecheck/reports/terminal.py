"""The matrix on a terminal: failures first, then what passed, then what was not carried out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.run_result import PARTLY
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports.matrix import Cell, Row, carried_out, matrix, names, not_carried_out
from doublecheck.reports.report import Report
from doublecheck.sanitize import visible

_STYLES = {
    Verdict.PASSED.value: "green",
    PARTLY: "green",
    Verdict.FAILED.value: "bold red",
    Verdict.ERROR.value: "bold magenta",
    Verdict.COULD_NOT_ASK.value: "bold magenta",
    None: "dim",
}
_GAP = 2


def show(reports: Sequence[Report], console: Console) -> None:
    """Print what was carried out, the reasons for the rest, and a line that sums up each report."""
    every = matrix(reports)
    rows = carried_out(every)
    console.print()
    if rows:
        console.print(_table(rows, reports))
    _fold(every, console, several=len(reports) > 1)
    console.print()
    for report in reports:
        console.print(Text(summary(report)), soft_wrap=True)
        for line in report.answered_by:
            console.print(Text(line, "dim"), soft_wrap=True)
        if report.cut_short:
            console.print(Text(report.cut_short, "bold yellow"), soft_wrap=True)


def summary(report: Report) -> str:
    """Return one line: the verdicts counted, the clauses without a check, and the duration."""
    counts = report.counts()
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    unchecked = len(clauses()) - sum(counts.values())
    left_out = f"{unchecked} of {len(clauses())} clauses were not checked. " if unchecked else ""
    return (
        f"{report.platform_description}: {told or 'nothing was checked'}. {left_out}"
        f"{report.effort}."
    )


def _fold(rows: Sequence[Row], console: Console, *, several: bool) -> None:
    """Print the clauses that were not checked, a line for each reason."""
    for (name, reason), ids in not_carried_out(rows).items():
        told = visible(f"{name}: {reason}" if several else reason)
        console.print()
        console.print(Text(told, _style(reason)), soft_wrap=True)
        console.print(Text(f"  {' '.join(ids)}", "dim"))


def _style(reason: str) -> str:
    return "bold magenta" if reason.startswith(Verdict.COULD_NOT_ASK.value) else "yellow"


def _table(rows: Sequence[Row], reports: Sequence[Report]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column("clause", no_wrap=True)
    table.add_column("level", no_wrap=True)
    for name in _heads(reports):
        table.add_column(Text(name), overflow="fold")
    table.add_column("")
    for row in rows:
        verdicts = [Text(_word(cell), _STYLES.get(cell.outcome, "yellow")) for cell in row.cells]
        table.add_row(row.clause.id, row.clause.level, *verdicts, _explained(row))
    return table


def _heads(reports: Sequence[Report]) -> Sequence[str]:
    return ["verdict"] if len(reports) == 1 else names(reports)


def _word(cell: Cell) -> str:
    return cell.outcome or "-"


def _explained(row: Row) -> Text:
    return Text("\n").join([Text(row.clause.text), *(Text(one, "dim") for one in _reasons(row))])


def _reasons(row: Row) -> Iterator[str]:
    """Yield the first line of each reason once, with the platform if there are several."""
    for cell in row.cells:
        prefix = f"{cell.name}: " if len(row.cells) > 1 else ""
        lines = (check.line for check in cell.checks if check.reason)
        for line in dict.fromkeys(lines):
            yield visible(prefix + line)
