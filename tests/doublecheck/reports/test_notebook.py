"""Reports in a notebook: a line of text, and HTML with escaped answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck.contracts.run_result import Run
from doublecheck.errors import ReportError
from doublecheck.reports.report import Report
from tests.doublecheck.reports.examples import DOUBLE, STAGING


def test_a_report_is_one_line_of_text() -> None:
    """It lists the worst verdicts first and mentions an interrupt."""
    assert "<Report double: 2 clauses, 2 passed, 1.5 s>" == repr(DOUBLE)
    assert (
        "<Report staging: 4 clauses, 1 failed, 1 error, 1 passed, 1 not offered, interrupted, "
        "2.0 s>" == repr(STAGING)
    )
    assert "<Report x: 0 clauses, nothing was checked, 0.0 s>" == repr(
        Report("x", "double", None, Run((), pytest_exit=0))
    )


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    """Text of a platform cannot act on the notebook."""
    for report in (STAGING, DOUBLE.side_by_side(STAGING)):
        html = report._repr_mimebundle_()["text/html"]

        assert "<iframe sandbox=" in html
        assert "<script" not in html
        assert "Interrupted: 5 of 7 checks" in html


def test_a_report_has_its_failed_checks() -> None:
    """A notebook can assert that there are none."""
    assert () == DOUBLE.failed
    assert ["INV-04"] == [check.clause for check in STAGING.failed]


def test_the_suffix_selects_the_format_of_a_written_report(tmp_path: Path) -> None:
    written = DOUBLE.side_by_side(STAGING).write(tmp_path / "report.html")

    assert "staging" in written.read_text("utf-8")
    with pytest.raises(ReportError, match="must end in one of"):
        DOUBLE.write(tmp_path / "report.docx")
