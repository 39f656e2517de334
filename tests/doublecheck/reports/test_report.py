"""Reports as values and files; every one agrees with the exit code."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import ReportError
from doublecheck.reports import document, html, report, terminal
from doublecheck.reports.report import Report, Reports
from tests.doublecheck.reports.examples import DOUBLE, STAGING

CHECKS = (
    Check("test_x.py::test_a", "INV-08", Verdict.FAILED, "only recommended"),
    Check("test_x.py::test_b", "INV-04", Verdict.FAILED, "needed"),
    Check("test_x.py::test_c", "INV-04", Verdict.PASSED),
    Check("test_x.py::test_d", "PRB-01", Verdict.PASSED),
)
LENIENT = Report("double", "double", None, Run(CHECKS, pytest_exit=1))
STRICT = Report("double", "double", None, Run(CHECKS, pytest_exit=1, strict_should=True))


@pytest.mark.parametrize(
    ("report", "counts", "failed"),
    [
        (LENIENT, {"failed": 1, "failed (should)": 1, "passed": 1}, ["INV-04"]),
        (STRICT, {"failed": 2, "passed": 1}, ["INV-04", "INV-08"]),
    ],
    ids=["lenient", "strict"],
)
def test_every_report_counts_the_failures_of_the_exit_code(
    report: Report, counts: dict[str, int], failed: list[str]
) -> None:
    summary = ", ".join(f"{count} {word}" for word, count in counts.items())
    json = document.to_document(report)

    assert list(counts.items()) == list(report.counts().items())
    assert failed == [check.clause for check in report.failed]
    assert counts["failed"] == len(report.failed)
    assert f"<Report double: 3 clauses, {summary}, 0.0 s>" == repr(report)
    assert f": {summary}. " in terminal.summary(report)
    assert counts == json["summary"]
    jsonschema.validate(json, document.schema())
    for count, word in ((count, word) for word, count in counts.items()):
        assert f">{count} {word}<" in html.render([report])


def test_forgiven_failures_are_reported_by_clause() -> None:
    page = html.render([LENIENT])

    assert "only recommended" in page
    assert ">failed (should)<" in page
    assert ">failed (should)<" not in html.render([STRICT])


def test_a_report_replaces_an_older_one(tmp_path: Path) -> None:
    """Links are followed, and no temporary file remains."""
    old, link = tmp_path / "old.html", tmp_path / "link.html"
    old.write_text("old")
    link.symlink_to(old)

    report.require_writable(link)
    report.write([DOUBLE], link)

    assert (True, "<!doctype") == (link.is_symlink(), old.read_text("utf-8")[:9])
    assert ["link.html", "old.html"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "message"), [("absent/r.html", "No such file"), (".", "it is not a file")]
)
def test_unwritable_paths_are_refused_beforehand(tmp_path: Path, name: str, message: str) -> None:
    """Nothing is left behind."""
    with pytest.raises(ReportError, match=f"The report cannot be written to .*: {message}"):
        report.require_writable(tmp_path / name)

    assert [] == list(tmp_path.iterdir())


def test_the_suffix_selects_the_format(tmp_path: Path) -> None:
    """An unknown suffix is refused with the valid ones."""
    starts = {".html": "<!doctype", ".JSON": "{"}

    for suffix, start in starts.items():
        report.write([DOUBLE], tmp_path / f"report{suffix}")
        assert start == (tmp_path / f"report{suffix}").read_text("utf-8")[: len(start)]

    with pytest.raises(ReportError, match=r"must end in one of \.html, \.json"):
        report.write([DOUBLE], tmp_path / "report.pdf")


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
    for displayed in (STAGING, Reports((DOUBLE, STAGING))):
        html = displayed._repr_mimebundle_()["text/html"]

        assert "<iframe sandbox=" in html
        assert "<script" not in html
        assert "Interrupted: 5 of 7 checks" in html


def test_a_report_has_its_failed_checks() -> None:
    """A notebook can assert that there are none."""
    assert () == DOUBLE.failed
    assert ["INV-04"] == [check.clause for check in STAGING.failed]


def test_the_suffix_selects_the_format_of_a_written_report(tmp_path: Path) -> None:
    written = Reports((DOUBLE, STAGING)).write(tmp_path / "report.html")

    assert "staging" in written.read_text("utf-8")
    with pytest.raises(ReportError, match="must end in one of"):
        DOUBLE.write(tmp_path / "report.docx")
