"""The matrix: the result of each platform, clause by clause, for the terminal and for HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.contracts.run_result import NOT_CARRIED_OUT, OUTCOMES, Check, Run
from doublecheck.contracts.verdicts import Verdict, worst
from doublecheck.reports.report import Report

_FOLDED = (Verdict.COULD_NOT_ASK.value, *NOT_CARRIED_OUT)


@dataclass(frozen=True)
class Cell:
    """The verdict on a clause for one platform; None if nothing was checked.

    ``outcome`` is the verdict in words; it also says if a failure does not fail the run.
    """

    name: str
    verdict: Verdict | None
    checks: Sequence[Check]
    outcome: str | None = None


@dataclass(frozen=True)
class Row:
    """A clause and a cell for each platform, in the order of the reports."""

    clause: Clause
    cells: Sequence[Cell]

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
        cells = [_cell(name, run, clause, by.get(clause, ())) for name, (run, by) in reported]
        if any(cell.checks for cell in cells):
            rows.append(Row(clause, cells))
    return rows


def names(reports: Sequence[Report]) -> Sequence[str]:
    """Return the reports' names; duplicates are numbered."""
    given = [report.name for report in reports]
    return [
        f"{name} ({given[: index + 1].count(name)})" if given.count(name) > 1 else name
        for index, name in enumerate(given)
    ]


def carried_out(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows with a check that was carried out: failures first, then in order.

    Those that could not be asked are not among them, unless another platform could.
    """
    found = [row for row in rows if any(map(_is_carried_out, row.cells))]
    return sorted(found, key=lambda row: min(map(_rank, row.cells)))


def not_carried_out(rows: Sequence[Row]) -> Mapping[tuple[str, str], Sequence[str]]:
    """Return the clauses of the other rows, by the name of the platform and the reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    folded = [row for row in rows if not any(map(_is_carried_out, row.cells))]
    for row in sorted(folded, key=lambda row: min(map(_place, row.cells))):
        for cell in row.cells:
            lines = [check.line for check in cell.checks if check.role != "observation"]
            for line in dict.fromkeys(lines or [check.line for check in cell.checks]):
                reasons.setdefault((cell.name, line), []).append(row.clause.id)
    return reasons


def _is_carried_out(cell: Cell) -> bool:
    return cell.outcome is not None and cell.outcome not in _FOLDED


def _rank(cell: Cell) -> int:
    """Return the place of a cell: the kinds of failures one after the other, then all others."""
    return min(_place(cell), OUTCOMES.index(Verdict.PASSED.value))


def _place(cell: Cell) -> int:
    return OUTCOMES.index(cell.outcome) if cell.outcome in OUTCOMES else len(OUTCOMES)


def groups(rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
    """Return the rows by the group of their clause, such as INV."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.clause.id.partition("-")[0], []).append(row)
    return found


def _cell(name: str, run: Run, clause: Clause, checks: Sequence[Check]) -> Cell:
    if not checks:
        return Cell(name, None, checks)
    verdict = worst([check.verdict for check in checks])
    return Cell(name, verdict, checks, run.clause_outcome(clause, checks))
