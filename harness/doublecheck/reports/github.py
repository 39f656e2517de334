"""GitHub Actions: annotations of failed checks, and the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from doublecheck.contracts.clauses import find
from doublecheck.contracts.run_result import Check
from doublecheck.contracts.verdicts import NOT_ASKED, Verdict
from doublecheck.reports import files, markdown
from doublecheck.reports.report import Report

_FOLDER = "doublecheck/contracts"


def workflow_commands(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a workflow command for each check that failed or could not ask.

    An error fails the run; a failed recommendation is a warning.
    """
    for report in reports:
        failed = {id(check) for check in report.failed}
        for check in report.checks:
            if check.verdict is Verdict.FAILED or check.verdict in NOT_ASKED:
                fails = id(check) in failed or check.verdict in NOT_ASKED
                yield _annotation("error" if fails else "warning", report, check)


def append_summary(reports: Sequence[Report], environ: Mapping[str, str]) -> None:
    """Append the reports to the summary of the job, if there is one; raise ReportError."""
    path = environ.get("GITHUB_STEP_SUMMARY")
    if path:
        files.append_text(f"{markdown.render(reports)}\n", Path(path))


def _annotation(kind: str, report: Report, check: Check) -> str:
    module = check.name.partition("::")[0]
    title = f"{check.clause} {check.verdict.value}: {report.name}"
    text = f"{find(check.clause)}\n{check.name}\n{check.reason}"
    place = f"file={_property(f'{_FOLDER}/{module}')},title={_property(title)}"
    return f"::{kind} {place}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
