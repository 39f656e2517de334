"""Failed recommendations: every report agrees with the exit code."""

from __future__ import annotations

import jsonschema
import pytest

from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports import document, html, terminal
from doublecheck.reports.report import Report

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
