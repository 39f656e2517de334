from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import ReportError
from doublecheck.reports import github
from doublecheck.reports.report import Report
from tests.doublecheck.reports.examples import DOUBLE, STAGING

CHECKS = (
    Check("test_x.py::test_a", "INV-04", Verdict.FAILED, "100 %\nmore"),
    Check("test_x.py::test_b", "INV-08", Verdict.FAILED, "recommended"),
    Check("test_x.py::test_c", "CTL-04", Verdict.COULD_NOT_ASK, "no answer"),
    Check("test_x.py::test_d", "PRB-01", Verdict.PASSED),
)


def test_each_failure_is_an_annotation() -> None:
    """One that does not fail the run is a warning; a line break does not end it."""
    report = Report("a, b:c", "live", "http://a", Run(CHECKS, pytest_exit=1))

    told = list(github.workflow_commands([DOUBLE, report]))

    file = "file=doublecheck/contracts/test_x.py"
    assert [
        (
            f"::error {file},title=INV-04 failed%3A a%2C b%3Ac::INV-04 (must): A returned string is "
            "wrapped as a JSON response.%0Atest_x.py::test_a%0A100 %25%0Amore"
        ),
        f"::warning {file},title=INV-08 failed",
        f"::error {file},title=CTL-04 could not ask",
    ] == [told[0], *(line.partition("%3A")[0] for line in told[1:])]


def test_the_summary_of_a_job_is_extended(tmp_path: Path) -> None:
    """What is there already stays; without a file there is none."""
    path = tmp_path / "summary.md"
    path.write_text("before\n")

    github.append_summary([STAGING], {"GITHUB_STEP_SUMMARY": str(path)})
    github.append_summary([STAGING], {})

    told = path.read_text("utf-8")
    assert told.startswith("before\n## Contract checks\n")
    assert 1 == told.count("## Contract checks")


def test_a_summary_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="Is a directory"):
        github.append_summary([DOUBLE], {"GITHUB_STEP_SUMMARY": str(tmp_path)})
