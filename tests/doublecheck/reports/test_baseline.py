"""Runs with a baseline: only what is new fails them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from rich.console import Console

from doublecheck.contracts.run_result import FIXED, KNOWN, Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.core.exit_codes import ExitCode
from doublecheck.reports import document, html, terminal
from doublecheck.reports.baseline import Baseline
from doublecheck.reports.report import Report

pytestmark = pytest.mark.once

NEW = Check("a", "INV-04", Verdict.FAILED, "GET /invoke answers HTTP 404")
OLD = Check("b", "PRB-01", Verdict.FAILED, "GET /ping answers HTTP 404", baseline=KNOWN)
RIGHT = Check("c", "CTL-04", Verdict.PASSED, baseline=FIXED)


def report(*checks: Check) -> Report:
    return Report("live", "live", "http://a", Run(checks, pytest_exit=1))


def test_only_new_failures_fail_a_run() -> None:
    """A known failure is counted as such, and keeps its verdict."""
    known, both = report(OLD, RIGHT), report(OLD, NEW)

    assert (ExitCode.PASSED, ExitCode.FAILED) == (known.exit_code, both.exit_code)
    assert ((), (NEW,)) == (known.failed, both.failed)
    assert {"failed": 1, "failed (known)": 1} == both.counts()
    assert Verdict.FAILED is known.verdicts["PRB-01"]
    assert (RIGHT,) == known.fixed


def test_a_new_failure_is_not_hidden_by_a_known_one() -> None:
    """Not even of the same clause, and for the same cause."""
    new = Check("d", "PRB-01", Verdict.FAILED, OLD.reason)

    assert {"failed": 1} == report(OLD, new).counts()
    assert ["failed", "failed (known)"] == [it.outcome for it in report(OLD, new).run.findings()]


@pytest.mark.parametrize(
    ("before", "now", "known"),
    [
        ("3 of 10 answers are lost", "4 of 12 answers are lost", True),
        ("it answers HTTP 404", "it answers HTTP 500", False),
        ("'abc' came back as \"abd\"", "'x' came back as \"y\"", True),
        ("assert 1 == 2", "assert 'a' in b", True),
        ("it answers HTTP 404", "it does not answer", False),
        ("assert 1 == 2", "it does not answer", False),
    ],
)
def test_a_failure_for_another_cause_is_new(before: str, now: str, known: bool) -> None:
    """Values in the cause may differ."""
    baseline = Baseline([Check("a", "INV-04", Verdict.FAILED, before)])

    assert known == baseline.knows(Check("a", "INV-04", Verdict.FAILED, now))
    assert not baseline.knows(Check("b", "INV-04", Verdict.FAILED, before))


def test_every_report_shows_the_baseline() -> None:
    file, shown = io.StringIO(), report(NEW, OLD, RIGHT)
    terminal.show([shown], Console(file=file, width=100))
    page = html.render([shown])

    assert [
        "failed: GET /invoke answers HTTP 404  INV-04",
        "failed (known): GET /ping answers HTTP 404  PRB-01",
        "no longer fails  CTL-04",
    ] == file.getvalue().strip().splitlines()[:3]
    assert '<span class="badge failed-known">failed (known)</span>' in page
    assert '<span class="badge known-failure">known failure</span>' in page
    assert 'no longer fails</span> <a href="#CTL-04">' in page
    jsonschema.validate(document.to_document(shown), document.schema())
    assert shown == document.from_document(document.to_document(shown))


CONFTEST = "from doublecheck.contracts.conftest import *\n"
CHECKS = """
import pytest
from doublecheck.contracts.clauses import clause

@clause("DEC-01")
def test_passes(): pass

@clause("DEC-02")
def test_fails():
    pytest.fail("it is broken in {} ways")

@clause("DEC-03")
def test_repaired(): {}
"""


def run(pytester: pytest.Pytester, ways: str, repaired: str, *options: str) -> pytest.RunResult:
    folder = pytester.path / "checks"
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_checks.py").write_text(CHECKS.format(ways, repaired))
    return pytester.runpytest_subprocess(folder, "-p", "no:cacheprovider", *options)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_pytest_knows_the_failures_of_an_earlier_run(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    """JUnit XML has them as expected failures."""
    first = run(pytester, "2", "assert False", "--platform-report=gaps.json")
    files = ("--platform-report=now.json", "--junit-xml=now.xml")
    again = run(pytester, "3", "pass", "--platform-baseline=gaps.json", *files, *workers)
    other = run(pytester, "other", "pass", "--platform-baseline=gaps.json")

    assert (1, 0, 1) == (first.ret, again.ret, other.ret)
    again.stdout.fnmatch_lines(["*2 passed, 1 known*"])
    (now,) = document.read(pytester.path / "now.json")
    assert ["", KNOWN, FIXED] == [check.baseline for check in now.checks]
    assert "it is broken in 3 ways" in now.checks[1].details
    cases = ElementTree.parse(pytester.path / "now.xml").getroot().iter("testcase")
    expected = {"test_passes": [], "test_fails": ["skipped"], "test_repaired": ["properties"]}
    found = {case.get("name"): case for case in cases}
    skipped = found["test_fails"].find("skipped")
    assert skipped is not None
    assert (
        "pytest.xfail",
        "known failure: it is broken in 3 ways",
    ) == (skipped.get("type"), skipped.get("message"))
    fixed = [it.get("value") for it in found["test_repaired"].iter("property")]
    assert FIXED in fixed
    assert expected.keys() == found.keys()


def test_a_bad_baseline_is_wrong_usage(pytester: pytest.Pytester, tmp_path: Path) -> None:
    file = tmp_path / "gaps.json"
    file.write_text("{}")

    ended = run(pytester, "2", "pass", f"--platform-baseline={file}")

    assert pytest.ExitCode.USAGE_ERROR == ended.ret
    ended.stderr.fnmatch_lines([f"ERROR: {file} is not a report: *"])


def test_of_several_reports_the_baseline_is_that_of_the_target(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    file = tmp_path / "gaps.json"
    run(pytester, "2", "pass", "--platform-report=gaps.json")
    one = json.loads((pytester.path / "gaps.json").read_text())
    other = {**one, "target": {**one["target"], "name": "staging"}, "clauses": []}

    file.write_text(json.dumps([other, one]))
    found = run(pytester, "2", "pass", f"--platform-baseline={file}")
    file.write_text(json.dumps([other, other]))
    missing = run(pytester, "2", "pass", f"--platform-baseline={file}")

    assert (0, pytest.ExitCode.USAGE_ERROR) == (found.ret, missing.ret)
    missing.stderr.fnmatch_lines(["ERROR: *not exactly one of double*"])
