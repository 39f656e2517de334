"""Reports in a notebook: short text and HTML, in which all that a platform said is escaped."""

from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck.contracts.run_result import Run
from doublecheck.errors import ReportError
from doublecheck.reports.report import Report
from tests.doublecheck.reports.examples import DOUBLE, STAGING


def test_a_report_is_one_line_of_text() -> None:
    """It names what came out, the worst first, and that it was interrupted."""
    assert "<Report double: 2 clauses, 2 passed, 1.5 s>" == repr(DOUBLE)
    assert (
        "<Report staging: 4 clauses, 1 failed, 1 error, 1 passed, 1 not offered, interrupted, "
        "2.0 s>" == repr(STAGING)
    )
    assert "<Report x: 0 clauses, nothing was checked, 0.0 s>" == repr(
        Report("x", "double", None, Run((), pytest_exit=0))
    )


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    """What a platform said cannot reach the notebook."""
    for report in (STAGING, DOUBLE.side_by_side(STAGING)):
        html = report._repr_mimebundle_()["text/html"]

        assert "<iframe sandbox=" in html
        assert "<script" not in html
        assert "Interrupted: 5 of 7 checks" in html


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
