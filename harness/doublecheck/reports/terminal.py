"""Reports on a terminal: findings first, then what passed, then what did not run.

Several reports, or all details of one, are a matrix with a row for each clause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.contracts.run_result import (
    FIXED,
    NOT_CARRIED_OUT,
    OUTCOMES,
    PARTLY,
    UNASKED,
    Check,
    Run,
)
from doublecheck.contracts.verdicts import Verdict, worst
from doublecheck.core.notebook_repr import visible
from doublecheck.reports.report import Report

_FOLDED = (Verdict.COULD_NOT_ASK.value, *NOT_CARRIED_OUT)

_STYLES = {
    Verdict.PASSED.value: "green",
    PARTLY: "green",
    Verdict.FAILED.value: "bold red",
    Verdict.ERROR.value: "bold magenta",
    Verdict.COULD_NOT_ASK.value: "bold magenta",
    None: "dim",
}
_GAP = 2


@dataclass(frozen=True)
class ReportCell:
    """The verdict on a clause for one platform, or None if nothing was checked.

    ``outcome`` is the verdict in words; it also says whether a failure fails the run.
    """

    name: str
    verdict: Verdict | None
    checks: Sequence[Check]
    outcome: str | None = None


@dataclass(frozen=True)
class Row:
    """A clause and a cell for each platform, in the order of the reports."""

    clause: Clause
    cells: Sequence[ReportCell]

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """The verdicts of the cells that have one."""
        return [cell.verdict for cell in self.cells if cell.verdict is not None]


def matrix(reports: Sequence[Report]) -> Sequence[Row]:
    """Return a row for each clause in any of the reports, in the specification's order."""
    checked = [(report.run, report.run.by_clause()) for report in reports]
    reported = list(zip(names(reports), checked, strict=True))
    rows = []
    for clause in clauses().values():
        cells = [_cell(name, run, by.get(clause, ())) for name, (run, by) in reported]
        if any(cell.checks for cell in cells):
            rows.append(Row(clause, cells))
    return rows


def names(reports: Sequence[Report]) -> Sequence[str]:
    """Return the reports' names. Duplicates are numbered."""
    all_names = [report.name for report in reports]
    return [
        f"{name} ({all_names[: index + 1].count(name)})" if all_names.count(name) > 1 else name
        for index, name in enumerate(all_names)
    ]


def carried_out(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows with a check that ran: failures first, then in order.

    Checks that got no answer do not count, unless another platform answered.
    """
    silent = (None, *_FOLDED)
    carried = [row for row in rows if any(cell.outcome not in silent for cell in row.cells)]
    return sorted(carried, key=lambda row: min(map(_rank, row.cells)))


def _rank(cell: ReportCell) -> int:
    """Return the rank of a cell: each kind of failure, then all others."""
    others = OUTCOMES.index(Verdict.PASSED.value)
    return min(OUTCOMES.index(cell.outcome), others) if cell.outcome in OUTCOMES else others


def groups(rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
    """Return the rows by the group of their clause, such as INV."""
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        by_group.setdefault(row.clause.id.partition("-")[0], []).append(row)
    return by_group


def _cell(name: str, run: Run, checks: Sequence[Check]) -> ReportCell:
    if not checks:
        return ReportCell(name, None, checks)
    verdict = worst([check.verdict for check in checks])
    return ReportCell(name, verdict, checks, run.clause_outcome(checks))


def show(reports: Sequence[Report], console: Console, *, verbose: bool = False) -> None:
    """Print the findings and the other clauses by outcome, and a summary line for each report.

    If ``verbose``, or for several reports, first print a row for each clause that ran.
    """
    several, rows = len(reports) > 1, carried_out(matrix(reports))
    console.print()
    if rows and (several or verbose):
        console.print(_table(rows, reports))
        console.print()
    for name, report in zip(names(reports), reports, strict=True):
        for (outcome, title), ids in _groups(report.run).items():
            line = Text(visible(f"{name}: {title}" if several else title), _style(outcome))
            fits = len(line) + _GAP + len(ids) <= console.width
            console.print(line, end=" " * _GAP if fits else "\n", soft_wrap=True)
            console.print(Text(ids, "dim") if fits else Padding(Text(ids, "dim"), (0, 0, 0, _GAP)))
    console.print()
    for report in reports:
        console.print(Text(summary(report)), soft_wrap=True)
        for warning in report.warnings:
            console.print(Text(warning, "bold yellow"), soft_wrap=True)


def _groups(run: Run) -> Mapping[tuple[str, str], str]:
    """Return clauses by outcome and title: the findings, what passed, and reasons for the rest."""
    findings = {
        (finding.outcome, f"{finding.outcome}: {finding.cause}"): finding.clauses
        for finding in run.findings()
    }
    fixed = tuple(dict.fromkeys(check.clause for check in run.fixed()))
    if fixed:
        findings[Verdict.PASSED.value, FIXED] = fixed
    others: dict[tuple[str, str], list[str]] = {}
    for clause, checks in run.by_clause().items():
        outcome = run.clause_outcome(checks)
        if outcome in (Verdict.PASSED.value, PARTLY):
            others.setdefault((outcome, outcome), []).append(clause.id)
        if outcome in (PARTLY, *NOT_CARRIED_OUT):
            skipped = [it for it in checks if it.verdict is not Verdict.PASSED]
            for key in {(it.verdict.value, it.line.partition(". ")[0]): None for it in skipped}:
                others.setdefault(key, []).append(clause.id)
    in_order = sorted(others.items(), key=lambda item: OUTCOMES.index(item[0][0]))
    return {key: " ".join(ids) for key, ids in (*findings.items(), *in_order)}


def _style(outcome: str | None) -> str:
    return _STYLES.get(outcome, "yellow")


def summary(report: Report) -> str:
    """Return one line: the verdicts counted, the clauses without a check, and the duration."""
    counts = report.counts()
    verdicts = ", ".join(f"{count} {word}" for word, count in counts.items())
    unchecked = len(clauses()) - sum(counts.values())
    unchecked_note = (
        f"{unchecked} of {len(clauses())} clauses were not checked. " if unchecked else ""
    )
    return (
        f"{report.platform_description}: {verdicts or 'nothing was checked'}. {unchecked_note}"
        f"{report.effort}."
    )


def _table(rows: Sequence[Row], reports: Sequence[Report]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column("clause", no_wrap=True)
    table.add_column("level", no_wrap=True)
    for name in ["verdict"] if len(reports) == 1 else names(reports):
        table.add_column(Text(name), overflow="fold")
    table.add_column("")
    for row in rows:
        verdicts = [Text(cell.outcome or "-", _style(cell.outcome)) for cell in row.cells]
        table.add_row(row.clause.id, row.clause.level, *verdicts, _explained(row))
    return table


def _explained(row: Row) -> Text:
    return Text("\n").join(
        [Text(row.clause.text), *(Text(reason, "dim") for reason in _reasons(row))]
    )


def _reasons(row: Row) -> Iterator[str]:
    """Yield each reason's first line once per platform; name the platform if there are several."""
    for cell in row.cells:
        prefix = f"{cell.name}: " if len(row.cells) > 1 else ""
        lines = [check.line for check in cell.checks if check.reason]
        lines += [f"{UNASKED}: {check.name}" for check in cell.checks if check.is_unasked]
        for line in dict.fromkeys(lines):
            yield visible(prefix + line)
