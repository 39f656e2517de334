from __future__ import annotations

import io

import pytest
from rich.console import Console

from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports import terminal
from doublecheck.reports.report import Report
from tests.doublecheck.reports.examples import DOUBLE, INTERRUPTED, STAGING

pytestmark = pytest.mark.smoke

RUN = Run(
    (
        Check("b", "CTL-04", Verdict.NOT_RUN, "not run: takes long"),
        Check("a", "INV-04", Verdict.FAILED, "assert 1 == 2\nmore"),
        Check("c", "INV-04", Verdict.PASSED),
    ),
    pytest_exit=1,
)


def show(*, colours: bool) -> str:
    file = io.StringIO()
    report = Report("double", "double", None, RUN)
    console = Console(file=file, width=100, force_terminal=colours)
    terminal.show([report], console, verbose=True)
    return file.getvalue()


def test_checks_that_did_not_run_are_folded() -> None:
    """Each clause appears once, with its worst verdict and the reasons' first lines."""
    assert [
        "clause  level  verdict",
        "INV-04  must   failed   A returned string is wrapped as a JSON response.",
        "                        assert 1 == 2",
        "",
        "failed: assert 1 == 2  INV-04",
        "not run: takes long  CTL-04",
        "",
        "a temporary double: 1 failed, 1 not run. 83 of 85 clauses were not checked. 3 checks, 0 requests, in 0.0 s.",
    ] == [line.rstrip() for line in show(colours=False).strip().splitlines()]


def test_failures_come_first() -> None:
    """The other executed checks follow in the specification's order."""
    verdicts = [Verdict.PASSED, Verdict.PASSED, Verdict.FAILED, Verdict.COULD_NOT_ASK]
    ids = ["INV-04", "PRB-01", "CTL-01", "CTL-04"]
    checks = [Check("a", id_, verdict) for id_, verdict in zip(ids, verdicts, strict=True)]

    report = Report("live", "live", "http://a", Run(tuple(checks), 1))
    lines = _lines([report], width=100, verbose=True)

    expected = ["CTL-01", "INV-04", "PRB-01"]
    assert expected == [line[:6] for line in lines if line[:6] in expected]


def test_could_not_ask_is_grouped_by_reason() -> None:
    """It precedes checks that did not run for other reasons."""
    checks = [Check("a", id_, Verdict.COULD_NOT_ASK, "it hangs") for id_ in ("PRB-01", "PRB-02")]
    skipped = Check("b", "INV-04", Verdict.NOT_RUN, "not run: takes long")

    lines = _lines([Report("live", "live", "http://a", Run((skipped, *checks), 1))], width=100)

    assert "could not ask: it hangs  PRB-01 PRB-02" == lines[0]
    assert "not run: takes long  INV-04" == lines[1]


def test_a_partly_checked_clause_is_marked() -> None:
    """The reason for the rest is below its outcome."""
    checks = (
        Check("a", "PRB-06", Verdict.PASSED),
        Check("b", "PRB-06", Verdict.NOT_OBSERVABLE, "not observable: needs the application"),
    )
    report = Report("live", "live", "http://a", Run(checks, 0))

    lines = _lines([report], width=120, verbose=True)

    assert lines[1].startswith("PRB-06  should  partly passed  Ping answers within 1 second")
    assert "not observable: needs the application" == lines[2].strip()
    assert {"partly passed": 1} == report.counts()


def test_a_smoke_check_passes_a_clause_partly() -> None:
    """It replaces the full checks."""
    smoke = Check("a", "MCP-03", Verdict.PASSED, role="smoke")

    assert {"partly passed": 1} == Run((smoke,), 0).counts()
    assert {"passed": 1} == Run((smoke, Check("b", "MCP-03", Verdict.PASSED)), 0).counts()


def test_only_terminals_get_colours() -> None:
    assert (True, False) == ("\x1b[" in show(colours=True), "\x1b[" in show(colours=False))


def test_platforms_are_columns() -> None:
    """A clause that was not checked on one of them has a dash."""
    lines = _lines([DOUBLE, STAGING], width=100)

    assert "clause  level   double  staging" == lines[0]
    assert (
        "INV-04  must    passed  failed   A returned string is wrapped as a JSON response." in lines
    )
    assert "CTL-04  should  passed  -        An unknown tool id is refused." in lines
    assert INTERRUPTED == lines[-1]


def test_a_narrow_terminal_wraps_text() -> None:
    """Platform answers cannot contain escape sequences."""
    lines = _lines([STAGING], width=60, verbose=True)

    assert all(len(line) <= 60 for line in lines[: lines.index("")])
    assert "\x1b" not in "".join(lines)


def test_each_cause_is_reported_once() -> None:
    """The clauses that passed follow as ranges, then the reasons for the rest."""
    missing, failed = "GET /version answers HTTP 404", Verdict.FAILED
    checks = [
        Check("a", "API-15", failed, "assert False", cause=missing),
        Check("b", "INV-08", failed, "assert 1 == 2"),
        Check("c", "INV-08", failed, "assert 3 == 4"),
        Check("d", "API-01", failed, "assert False", cause=missing),
        *(Check("e", f"PRB-0{number}", Verdict.PASSED) for number in (1, 2, 3, 5)),
        Check("f", "PRB-05", Verdict.NOT_RUN, "not run: takes long. It does"),
        Check("g", "CTL-04", Verdict.NOT_RUN, "not run: takes long. It does"),
    ]

    lines = _lines([Report("live", "live", "http://a", Run(tuple(checks), 1))], width=60)

    assert [
        "failed: GET /version answers HTTP 404  API-01 API-15",
        "failed (should): assert 1 == 2  INV-08",
        "passed  PRB-01 PRB-02 PRB-03",
        "partly passed  PRB-05",
        "not run: takes long  PRB-05 CTL-04",
    ] == lines[:5]


def test_a_full_run_fits_a_screen() -> None:
    """Even if each group of clauses has a few causes of its own."""
    causes = {
        id_: f"{id_[:3]} is broken" + "!" * (number % 3) for number, id_ in enumerate(clauses())
    }
    checks = [Check("a", id_, Verdict.FAILED, cause, cause=cause) for id_, cause in causes.items()]

    lines = _lines([Report("live", "live", "http://a", Run(tuple(checks), 1))], width=100)

    assert len(lines) <= 40


def test_lost_answers_are_counted() -> None:
    report = Report("live", "live", "http://a", Run(RUN.checks, 1, requests=90, lost=12))

    assert "90 requests, 12 answers lost on the way and asked again, in" in terminal.summary(report)


def _lines(reports: list[Report], *, width: int, verbose: bool = False) -> list[str]:
    file = io.StringIO()
    terminal.show(reports, Console(file=file, width=width), verbose=verbose)
    return [line.rstrip() for line in file.getvalue().strip().splitlines()]
