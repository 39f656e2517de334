"""Reports as Markdown, for the summary of a CI job or a comment on a change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from doublecheck.contracts.run_result import Check
from doublecheck.reports.matrix import Row, carried_out, matrix, names, not_carried_out
from doublecheck.reports.report import Report
from doublecheck.sanitize import visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
_REASON_CHARS = 300


def render(reports: Sequence[Report]) -> str:
    """Return the text: a summary of each report, what was carried out, and the rest folded."""
    rows, told = matrix(reports), names(reports)
    lines = ["## Contract checks", ""]
    for report, name in zip(reports, told, strict=True):
        lines += [*_about(report, name), ""]
    lines += _table(carried_out(rows), told)
    lines += _folded(rows, several=len(reports) > 1)
    return "\n".join(lines) + "\n"


def _about(report: Report, name: str) -> Iterator[str]:
    counts = ", ".join(f"{count} {word}" for word, count in report.counts().items())
    yield f"**{_text(name)}**: {counts or 'nothing was checked'}. {_text(report.effort)}."
    yield from (f"\n{_text(line.strip())}" for line in report.answered_by)
    if report.cut_short:
        yield f"\n{_text(report.cut_short)}"


def _table(rows: Sequence[Row], told: Sequence[str]) -> Iterator[str]:
    if not rows:
        return
    heads = ["clause", "level", *(map(_text, told) if len(told) > 1 else ["verdict"]), ""]
    yield _line(heads)
    yield _line(["---"] * len(heads))
    for row in rows:
        outcomes = [cell.outcome or "-" for cell in row.cells]
        yield _line([row.clause.id, row.clause.level, *outcomes, _explained(row)])


def _explained(row: Row) -> str:
    reasons = [_text(_reason(check)) for cell in row.cells for check in cell.checks if check.reason]
    return "<br>".join([_text(row.clause.text), *dict.fromkeys(reasons)])


def _reason(check: Check) -> str:
    line = check.line
    return line if len(line) <= _REASON_CHARS else f"{line[:_REASON_CHARS]}…"


def _folded(rows: Sequence[Row], *, several: bool) -> Iterator[str]:
    reasons = not_carried_out(rows)
    if not reasons:
        return
    count = len({id_ for ids in reasons.values() for id_ in ids})
    clauses = "clause was" if count == 1 else "clauses were"
    yield from ("", f"<details><summary>{count} {clauses} not checked</summary>", "")
    for (name, reason), ids in reasons.items():
        yield f"- {f'{_text(name)}: ' if several else ''}{_text(reason)}: {', '.join(ids)}"
    yield from ("", "</details>")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """Return text as Markdown that shows just this text, on one line."""
    return _SPECIAL.sub(r"\\\1", visible(text).replace("&", "&amp;"))
