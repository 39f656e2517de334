"""Reports in a notebook: short text and HTML, in which all that a platform said is escaped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doublecheck.contracts.clauses import find
from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import ReportError
from doublecheck.reports.report import Report
from tests.doublecheck.reports.examples import DOUBLE, STAGING


def test_a_report_is_one_line_of_text() -> None:
    """It names what came out, the worst first, and that it was interrupted."""
    assert "<Report double: 2 clauses, 2 passed, 1.5 s>" == repr(DOUBLE)
    assert (
        "<Report staging: 4 clauses, 1 failed, 1 error, 1 observed, 1 not offered, interrupted, "
        "2.0 s>" == repr(STAGING)
    )
    assert "<Report x: 0 clauses, nothing was checked, 0.0 s>" == repr(
        Report("x", "double", None, Run((), pytest_exit=0))
    )


def test_what_failed_lies_open_and_is_text() -> None:
    """What a platform said is never HTML, and the others are folded."""
    html = STAGING._repr_mimebundle_()["text/html"]

    opened = re.findall(r"<details open[^>]*><summary[^>]*><b>([A-Z-\d]+)</b>", html)
    assert ["INV-04", "PRB-01"] == opened
    assert "&lt;script&gt;alert" in html
    assert "<script" not in html
    assert "Interrupted: 5 of 7 checks" in html


def test_reports_stand_side_by_side() -> None:
    """Each has a column; a clause that failed says where."""
    html = DOUBLE.side_by_side(STAGING)._repr_mimebundle_()["text/html"]

    heads = re.findall(r"<th [^>]*>([^<]*)</th>", html)
    assert ["surface", "clauses", "double", "staging", "time"] == heads[:5]
    assert ["clause", "level", "double", "staging", ""] == heads[5:]
    assert "<b>staging</b>" in html


def test_what_failed_is_found_in_the_report() -> None:
    """So a notebook asserts that nothing did."""
    assert () == DOUBLE.failed
    assert ["INV-04"] == [check.clause for check in STAGING.failed]


def test_a_report_is_written_by_the_suffix_of_its_file(tmp_path: Path) -> None:
    """As the command writes it."""
    written = DOUBLE.side_by_side(STAGING).write(tmp_path / "report.html")

    assert "staging" in written.read_text("utf-8")
    with pytest.raises(ReportError, match="must end in one of"):
        DOUBLE.write(tmp_path / "report.docx")


def test_a_failure_shows_the_check_and_not_what_the_harness_did_for_it() -> None:
    """Of an error all is shown, as it may be the harness's own."""
    details = """clause

/a b/doublecheck/contracts/test_x.py:1: in test_a
    assert platform.ping()
           ^^^^^^^^^^^^^^^
/lib/doublecheck/client/platform.py:2: in ping
    return self._call()
           ^^^^^^^^^^^^
E   AssertionError: said
"""
    failed, error = (
        Check("x::a", "INV-04", verdict, "said", 0.1, details)
        for verdict in (Verdict.FAILED, Verdict.ERROR)
    )

    shown = failed._repr_mimebundle_()["text/html"]
    assert "assert platform.ping()" in shown
    assert "E   AssertionError: said" in shown
    assert "_call" not in shown
    assert "_call" in error._repr_mimebundle_()["text/html"]


def test_checks_and_clauses_show_themselves() -> None:
    """One line of text each, and as HTML with what explains them."""
    check, clause = STAGING.checks[0], find("PRB-01")

    assert "<Check INV-04 failed: test_x.py::test_a, 0.25 s>" == repr(check)
    assert "&lt;script&gt;" in check._repr_mimebundle_()["text/html"]
    assert repr(clause).startswith("<Clause PRB-01 (must): GET /ping answers")
    assert "must · application · section" in clause._repr_mimebundle_()["text/html"]
