"""Exit codes of a run: from Python, from the command and in pytest."""

from __future__ import annotations

import pytest

from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.core.exit_codes import ExitCode
from doublecheck.reports.report import Report

pytestmark = pytest.mark.once

MUST, SHOULD = "INV-04", "INV-08"


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([(MUST, Verdict.PASSED), (MUST, Verdict.NOT_OFFERED)], ExitCode.PASSED),
        ([(MUST, Verdict.PASSED), (SHOULD, Verdict.FAILED)], ExitCode.PASSED),
        ([(MUST, Verdict.FAILED), (SHOULD, Verdict.COULD_NOT_ASK)], ExitCode.FAILED),
        ([(MUST, Verdict.PASSED), (SHOULD, Verdict.COULD_NOT_ASK)], ExitCode.COULD_NOT_ASK),
        ([(MUST, Verdict.PASSED), (SHOULD, Verdict.ERROR)], ExitCode.COULD_NOT_ASK),
        ([(MUST, Verdict.NOT_RUN)], ExitCode.NOTHING_CHECKED),
        ([], ExitCode.NOTHING_CHECKED),
    ],
)
def test_a_run_succeeds_only_if_a_check_passed(
    results: list[tuple[str, Verdict]], expected: ExitCode
) -> None:
    """A run in which nothing passed or failed has a separate code."""
    checks = tuple(Check("test_x.py::test_a", *result) for result in results)

    report = Report("live", "live", "http://a", Run(checks, pytest_exit=0))

    assert expected is report.exit_code


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (Run((Check("a", MUST, Verdict.FAILED),), 2, interrupted=True), ExitCode.INTERRUPTED),
        (Run((Check("a", MUST, Verdict.PASSED),), 3), ExitCode.COULD_NOT_ASK),
        (Run((Check("a", SHOULD, Verdict.FAILED),), 1, strict_should=True), ExitCode.FAILED),
    ],
    ids=["interrupted", "pytest broke", "strict"],
)
def test_an_aborted_run_never_succeeds(run: Run, expected: ExitCode) -> None:
    assert expected is run.exit_code


def test_the_worst_of_several_runs_counts() -> None:
    """A platform that passed does not hide one that could not be asked."""
    assert ExitCode.COULD_NOT_ASK is ExitCode.worst({ExitCode.PASSED, ExitCode.COULD_NOT_ASK})
    assert ExitCode.FAILED is ExitCode.worst({ExitCode.NOTHING_CHECKED, ExitCode.FAILED})


CONFTEST = "from doublecheck.contracts.conftest import *\n"
CHECKS = """
import pytest
from doublecheck.contracts.clauses import clause
from doublecheck.errors import NoAnswerError

@pytest.fixture
def silent():
    raise NoAnswerError("http://a", "timed out")

@clause("DEC-01")
def test_passes(): pass

@clause("DEC-02")
def test_fails(): assert False

@clause("DEC-03")
def test_asks_nobody(silent): pass

@clause("DEC-04")
def test_is_skipped(): pytest.skip("not observable: somewhere else")
"""


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("DEC-01 or DEC-04", ExitCode.PASSED),
        ("DEC-01 or DEC-02 or DEC-03", ExitCode.FAILED),
        ("DEC-01 or DEC-03", ExitCode.COULD_NOT_ASK),
        ("DEC-04", ExitCode.NOTHING_CHECKED),
        ("DEC-04 or of_the_user", ExitCode.PASSED),
        ("of_the_user", ExitCode.PASSED),
    ],
)
def test_pytest_exits_with_the_same_codes(
    pytester: pytest.Pytester, select: str, expected: ExitCode
) -> None:
    """Other tests of the run count as usual."""
    folder = pytester.mkpydir("checks")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_checks.py").write_text(CHECKS)

    own = pytester.makepyfile(test_own="def test_of_the_user(): pass")

    result = pytester.runpytest_inprocess(folder, own, "-k", select, "-p", "no:cacheprovider")

    assert expected == result.ret
    message = "Nothing was checked: no contract check passed or failed."
    assert (expected is ExitCode.NOTHING_CHECKED) == (message in result.outlines)
