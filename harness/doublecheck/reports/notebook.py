"""Reports in a notebook: failures are open, and below them each surface, clause by clause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.contracts.run_result import FORGIVEN, PARTLY, Check, in_order
from doublecheck.contracts.verdicts import NOT_ASKED, Verdict
from doublecheck.notebook.display.markup import (
    BAD,
    GOOD,
    INFO,
    ODD,
    QUIET,
    WARNING,
    Markup,
    badge,
    box,
    clipped,
    code,
    element,
    folded,
    joined,
    pre,
    quiet,
    scrolled,
    table,
    title,
    toned,
)
from doublecheck.notebook_repr import counted
from doublecheck.reports.matrix import Cell, Row, matrix, names
from doublecheck.reports.report import Report

_TONES: Mapping[str, str] = {
    Verdict.PASSED.value: GOOD,
    PARTLY: GOOD,
    Verdict.FAILED.value: BAD,
    FORGIVEN: WARNING,
    Verdict.ERROR.value: ODD,
    Verdict.COULD_NOT_ASK.value: ODD,
    Verdict.OBSERVED.value: INFO,
    Verdict.NOT_RUN.value: WARNING,
}
_TO_LOOK_AT = (Verdict.FAILED, *NOT_ASKED)
_LINE_CHARS = 200
# frames of the harness, which say nothing about the platform
_OURS = re.compile(
    r"^(?!\S*doublecheck[/\\]contracts[/\\])\S*\bdoublecheck[/\\]\S+\.py:\d+: in .*\n(?: {4}.*\n)*",
    re.M,
)
_FEW = 3  # the details of this many failures are also open


def render(reports: Sequence[Report]) -> Markup:
    """Return one report, or several side by side."""
    rows, told = matrix(reports), names(reports)
    looked_at = [row for row in rows if any(one in _TO_LOOK_AT for one in row.verdicts)]
    return box(
        *(_about(report, name) for report, name in zip(reports, told, strict=True)),
        *(_clause(row, details=len(looked_at) <= _FEW) for row in looked_at),
        _surfaces(rows, told) if rows else None,
        _all(rows, told) if rows else None,
    )


def report(one: Report) -> Markup:
    """Return one report."""
    return render((one,))


def check(one: Check) -> Markup:
    """Return one check: its verdict, and why."""
    explained = _details(one) or one.reason
    return box(
        title(
            one.clause, _badge(one.verdict.value), code(one.name), quiet(f"{one.duration_s:.2f} s")
        ),
        scrolled(pre(clipped(explained), tone=_tone(one.verdict.value))) if explained else None,
    )


def clause(one: Clause) -> Markup:
    """Return one clause of the specification."""
    where = f"{one.level} · {one.surface.replace('_', ' ')} · section {one.section}"
    return box(title(one.id, quiet(where)), element("div", one.text))


def _about(report: Report, name: str) -> Markup:
    run = report.run
    unchecked = len(clauses()) - len(report.verdicts)
    facts = [
        f"{report.kind} at {report.url}" if report.url else "a double of its own",
        report.effort,
        None if run.started is None else run.started.strftime("%Y-%m-%d %H:%M:%S %Z"),
        f"{unchecked} of {len(clauses())} clauses not checked" if unchecked else None,
    ]
    return joined(
        (
            title(name, *_counted(report.counts())),
            element("div", quiet(" · ".join(one for one in facts if one))),
            *(element("div", quiet(line.strip())) for line in report.answered_by),
            report.cut_short and element("div", toned(report.cut_short, WARNING)),
        )
    )


def _counted(counts: Mapping[str, int]) -> Iterator[Markup]:
    for word, count in counts.items():
        yield badge(f"{count} {word}", _tone(word))


def _clause(row: Row, *, details: bool) -> Markup:
    """Return a clause that failed on some platform, with details."""
    told = dict.fromkeys(cell.outcome for cell in row.cells if cell.outcome)
    verdicts = joined(map(_badge, told), " ")
    summed = joined((element("b", row.clause.id), " ", verdicts, " ", row.clause.text))
    shown = [
        one
        for cell in row.cells
        for check in cell.checks
        if check.verdict in _TO_LOOK_AT
        for one in _failure(check, cell, alone=len(row.cells) == 1, details=details)
    ]
    return folded(summed, *shown, opened=True)


def _failure(check: Check, cell: Cell, *, alone: bool, details: bool) -> Iterator[Markup]:
    target = None if alone else joined((element("b", cell.name), " "))
    first = _line(check.reason)
    yield element("div", target, code(check.name), quiet(f" {check.duration_s:.2f} s"))
    yield element("div", toned(first, _tone(check.verdict.value)))
    if check.details and check.details != first:
        shown = scrolled(pre(clipped(_details(check)), tone=_tone(check.verdict.value)))
        opened = alone and details
        yield folded("Where, what was said, and how to ask again", shown, opened=opened)


def _details(check: Check) -> str:
    """Return the details of a failure; an error, which may be ours, is shown in full."""
    return _OURS.sub("", check.details) if check.verdict is Verdict.FAILED else check.details


def _surfaces(rows: Sequence[Row], told: Sequence[str]) -> Markup:
    heads = ["surface", "clauses", *(told if len(told) > 1 else [""]), "time"]
    lines = []
    for surface, within in _by_surface(rows).items():
        columns = [[row.cells[index] for row in within] for index in range(len(told))]
        counted = [joined(_counted(_counts(cells)), " ") for cells in columns]
        checks = [check for cells in columns for cell in cells for check in cell.checks]
        took = f"{sum(check.duration_s for check in checks):.2f} s"
        lines.append([surface, str(len(within)), *counted, took])
    return table(heads, lines, right=("clauses", "time"))


def _all(rows: Sequence[Row], told: Sequence[str]) -> Markup:
    heads = ["clause", "level", *(told if len(told) > 1 else ["verdict"]), ""]
    lines = [[*_clause_cells(row), *map(_verdict, row.cells), _explained(row)] for row in rows]
    return folded(counted(len(rows), "clause"), table(heads, lines))


def _clause_cells(row: Row) -> tuple[Markup, str]:
    return element("b", row.clause.id), row.clause.level


def _verdict(cell: Cell) -> Markup:
    return quiet("-") if cell.outcome is None else _badge(cell.outcome)


def _explained(row: Row) -> Markup:
    """Return the text of a clause, and the first line of each reason below it."""
    reasons = dict.fromkeys(
        _line(check.line) for cell in row.cells for check in cell.checks if check.reason
    )
    return joined([row.clause.text, *(element("div", quiet(one)) for one in reasons)])


def _line(reason: str) -> str:
    first = reason.partition("\n")[0].rstrip()
    return first if len(first) <= _LINE_CHARS else f"{first[:_LINE_CHARS]}…"


def _by_surface(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.clause.surface.replace("_", " "), []).append(row)
    return found


def _counts(cells: Sequence[Cell]) -> Mapping[str, int]:
    return in_order(cell.outcome for cell in cells if cell.outcome)


def _badge(word: str) -> Markup:
    return badge(word, _tone(word))


def _tone(word: str) -> str:
    return _TONES.get(word, QUIET)
