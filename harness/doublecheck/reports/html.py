"""Reports as one HTML page: the findings, and the matrix with the results of the checks."""

from __future__ import annotations

from collections.abc import Sequence

from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.failure_report import heading, sentence, without_frames
from doublecheck.contracts.run_result import FIXED, KNOWN, UNASKED, Check, Finding
from doublecheck.contracts.verdicts import NOT_ASKED, Verdict
from doublecheck.core.frames import framed
from doublecheck.core.markup import Markup, element, joined
from doublecheck.core.notebook_repr import counted
from doublecheck.reports.page import badge, exchanges, folded, page
from doublecheck.reports.report import Report
from doublecheck.reports.terminal import ReportCell, Row, carried_out, groups, matrix, names

_HEIGHT_PX = 460
_TO_LOOK_AT = (Verdict.FAILED, *NOT_ASKED)


def render(reports: Sequence[Report]) -> str:
    """Return the page."""
    rows = matrix(reports)
    carried = carried_out(rows)
    return page(
        f"Contract checks: {', '.join(names(reports))}",
        element("h1", "Contract checks"),
        *(_about(report, name) for report, name in zip(reports, names(reports), strict=True)),
        _table(carried, names(reports)),
        _folded([row for row in rows if row not in carried], names(reports)),
    )


def report(report: Report) -> Markup:
    """Return the page of a report in a frame, for a notebook."""
    return framed_page((report,))


def framed_page(reports: Sequence[Report]) -> Markup:
    """Return the page in a frame, for a notebook."""
    return framed(render(reports), _HEIGHT_PX)


def _about(report: Report, name: str) -> Markup:
    run = report.run
    counts = report.counts()
    findings = [*map(_finding, run.findings())]
    unchecked = len(clauses()) - sum(counts.values())
    started = None if run.started is None else run.started.strftime("%Y-%m-%d %H:%M:%S %Z")
    lines = [
        f"{report.kind} at {report.url}" if report.url else report.kind,
        report.effort,
        started,
        f"{unchecked} of {len(clauses())} clauses not checked" if unchecked else None,
    ]
    return element(
        "section",
        element("h2", name),
        element("p", joined([badge(word, f"{n} {word}") for word, n in counts.items()])),
        element("p", joined([line for line in lines if line], " · "), class_="facts"),
        *(element("p", warning, class_="warning") for warning in report.warnings),
        element("ul", *findings, _fixed(run.fixed())) if findings or run.fixed() else None,
        class_="about",
    )


def _finding(finding: Finding) -> Markup:
    outcome = badge(finding.outcome)
    return element(
        "li", outcome, " ", finding.cause.removesuffix("."), ": ", _links(finding.clauses)
    )


def _fixed(checks: Sequence[Check]) -> Markup | None:
    """Return the clauses of checks that failed in the baseline and pass now."""
    ids = tuple(dict.fromkeys(check.clause for check in checks))
    return element("li", badge(FIXED), " ", _links(ids)) if ids else None


def _links(ids: Sequence[str]) -> Markup:
    return joined((element("a", id_, href=f"#{id_}") for id_ in ids), " ")


def _folded(rows: Sequence[Row], targets: Sequence[str]) -> Markup | None:
    """Return the clauses that were not checked, folded."""
    if not rows:
        return None
    summed = element("summary", f"{counted(len(rows), 'clause')} not checked")
    silent = any(Verdict.COULD_NOT_ASK in row.verdicts for row in rows)
    return element("details", summed, _table(rows, targets), class_="folded", open=silent)


def _table(rows: Sequence[Row], targets: Sequence[str]) -> Markup:
    heads = ["clause", "level", *(targets if len(targets) > 1 else ["verdict"]), ""]
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in heads)))
    return element(
        "table",
        head,
        *(element("tbody", *(_row(row) for row in rows)) for rows in groups(rows).values()),
    )


def _row(row: Row) -> Markup:
    id_ = row.clause.id
    return element(
        "tr",
        element("th", element("a", id_, href=f"#{id_}"), scope="row"),
        element("td", row.clause.level, class_="level"),
        *(_verdict(cell, alone=len(row.cells) == 1) for cell in row.cells),
        element("td", _explained(row), class_="text"),
        id=id_,
    )


def _verdict(cell: ReportCell, *, alone: bool) -> Markup:
    shown = badge(cell.outcome) if cell.outcome else "-"
    return element("td", shown, class_="verdict", data_target=None if alone else cell.name)


def _explained(row: Row) -> Markup:
    section = element("span", f"section {row.clause.section}", class_="section")
    checks = sum(len(cell.checks) for cell in row.cells)
    return joined(
        (
            element("p", f"{row.clause.text} ", section),
            folded(
                counted(checks, "check"),
                *(
                    _check(check, cell.name if len(row.cells) > 1 else None)
                    for cell in row.cells
                    for check in sorted(cell.checks, key=_is_quiet)
                ),
                opened=not all(_is_quiet(check) for cell in row.cells for check in cell.checks),
            ),
        )
    )


def _is_quiet(check: Check) -> bool:
    """Whether nobody needs to look at a check: it passed, did not run, or its failure is known."""
    return check.verdict not in _TO_LOOK_AT or check.baseline == KNOWN


def _check(check: Check, target: str | None) -> Markup:
    return element(
        "div",
        element(
            "p",
            target and joined((element("b", target), " ")),
            badge(check.baseline or check.verdict.value),
            " ",
            element("code", check.name),
            element("span", f" {_effort(check)}", class_="section"),
            joined((" ", badge(UNASKED))) if check.is_unasked else None,
        ),
        _failure(check) if check.details else check.reason and element("pre", check.reason),
        class_="check",
    )


def _failure(check: Check) -> Markup:
    """Return the reason, the requests and answers, and, folded, where the check failed."""
    reason, about_clause = sentence(check.reason), heading(clauses()[check.clause])
    shown, frames = without_frames(check.details)
    return joined(
        (
            element("p", reason, class_="reason"),
            exchanges(shown.removeprefix(reason).lstrip("\n").removeprefix(about_clause)),
            folded("where the check failed", element("pre", frames)) if frames else None,
        )
    )


def _effort(check: Check) -> str:
    duration = f"{check.duration_s:.2f} s"
    return (
        duration if check.requests is None else f"{counted(check.requests, 'request')}, {duration}"
    )
