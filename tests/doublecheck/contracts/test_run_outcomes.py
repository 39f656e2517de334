"""Exit codes of a run, from Python, from the command and in pytest, and the report of a failure."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pytest
from starlette.responses import PlainTextResponse

from agentdouble.apps import simple
from agentdouble.control_plane import authentication
from doublecheck import Target
from doublecheck.client.doubles import serving_double
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.core.exit_codes import ExitCode
from doublecheck.reports.report import Report
from doublecheck.run import pytest_run

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


BREAKS = """
import pytest
from doublecheck.contracts.clauses import clause

@pytest.fixture
def broken():
    raise RuntimeError("it broke")

@clause("DEC-05")
def test_breaks(broken): pass
"""


def test_modules_that_are_skipped_or_cannot_be_imported_are_reported(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_skipped="import pytest\npytest.skip('of no use here', allow_module_level=True)",
        test_broken="import nothing_has_this_name",
    )

    result = pytester.runpytest_inprocess("-rs")

    result.assert_outcomes(skipped=1, errors=1)
    result.stdout.fnmatch_lines(["SKIPPED * of no use here"])


def test_each_kind_of_failure_has_its_letter(pytester: pytest.Pytester) -> None:
    """What could not be asked is neither a failure nor an error, and gives its reason."""
    folder = pytester.mkpydir("checks")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_checks.py").write_text(CHECKS)
    (folder / "test_more.py").write_text(BREAKS)

    brief = pytester.runpytest_inprocess(folder, "-p", "no:cacheprovider")
    verbose = pytester.runpytest_inprocess(folder, "-p", "no:cacheprovider", "-v")

    brief.stdout.fnmatch_lines(["checks/test_checks.py .F?s *", "checks/test_more.py E *"])
    brief.stdout.fnmatch_lines(
        [
            "1 could not ask: http://a accepted*",
            "*1 failed, 1 passed, 1 skipped, 1 error, 1 could not ask*",
        ]
    )
    verbose.stdout.fnmatch_lines(["*::test_asks_nobody COULD NOT ASK*", "*::test_breaks ERROR*"])


@pytest.fixture(scope="module")
def double() -> Iterator[Target]:
    with serving_double(*reference_apps(), reference_app=True) as target:
        yield target


@pytest.fixture
def declared(double: Target, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options that point a run at the double."""
    for name, value in double.environment().items():
        monkeypatch.setenv(name, value)
    return [f"--platform-url={double.url}", "--platform-reference-app"]


def verdicts(run: Run) -> Mapping[str, Verdict]:
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def accept_any_body(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple, "failure", lambda *_: PlainTextResponse("fine"))


def run(*arguments: str, module: str, verbose: bool = False) -> Run:
    return pytest_run.run(arguments, verbose=verbose, modules=(module,))


def test_a_failure_report_is_complete(
    declared: list[str],
    double: Target,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It has the reason, the clause, the last exchanges, how to repeat them, and the traceback."""
    accept_any_body(monkeypatch)

    run(*declared, "-k", "INV-08", module="test_invocation", verbose=True)

    lines = capfd.readouterr().err.splitlines()
    at = lines.index(
        "INV-08 (should): A body that is not JSON is refused with a 4xx status and a clear error."
    )
    report = lines[at:]
    assert "specification, section 4.1" == report[1]
    assert any(line.endswith(lines[at - 1]) for line in report if line.startswith("E   "))
    request_at = report.index(f"> POST {double.url}/invoke")
    assert "> Content-Type: application/json" in report[request_at:]
    answer_line = next(line for line in report[request_at:] if line.startswith("< HTTP"))
    assert re.fullmatch(r"< HTTP 200, after \d+ ms", answer_line)
    again = report.index("Again:")
    assert report[again + 1].endswith(": its body is not text")
    words = f"--url {double.url} --reference-app --only INV-08"
    assert [f"  doublecheck run {words}", "", "Where the check failed:"] == report[again + 2 :][:3]
    assert again < min(at for at, line in enumerate(report) if line.startswith("E   "))
    assert "--strict-should makes them" in "\n".join(report[-2:])


@pytest.mark.needs("curl")
def test_the_curl_line_reproduces_the_answer(
    declared: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(simple, "result", lambda value: PlainTextResponse(f"plain: {value}"))
    run(*declared, "-k", "INV-04", module="test_invocation", verbose=True)
    error_output = capfd.readouterr().err

    line = error_output.partition("Again:\n")[2].splitlines()[0].strip()
    again = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)

    assert line.startswith("curl "), error_output
    assert again.stdout.startswith("plain: ")
    assert 'plain: two\\nlines, "quotes", {} and ünïcödé 🦉' not in line


def test_reports_omit_signatures(
    declared: list[str],
    double: Target,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The report says how to sign the request, but prints no keys, tokens or signatures."""
    monkeypatch.setattr(authentication, "metadata_of", lambda *_: {})

    assert {"CTL-01": Verdict.FAILED} == verdicts(
        run(*declared, "-k", "CTL-01", module="test_control_plane", verbose=True)
    )

    error_output = capfd.readouterr().err
    assert "signed with the target's access key and secret key" in error_output
    assert "> Authorization: ***" in error_output
    assert "Signature=" not in error_output
    credentials = double.address().credentials
    assert credentials.secret_key not in error_output


def test_a_failed_should_clause_fails_the_run_only_in_strict_mode(
    declared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is a failure either way."""
    accept_any_body(monkeypatch)

    lenient = run(*declared, "-k", "INV-08", module="test_invocation")
    strict = run(*declared, "-k", "INV-08", "--platform-strict-should", module="test_invocation")

    assert {"INV-08": Verdict.FAILED} == verdicts(lenient) == verdicts(strict)
    assert (0, 1) == (lenient.pytest_exit, strict.pytest_exit)
    assert (False, True) == (lenient.fails(), strict.fails(strict_should=True))


def in_a_finalizer() -> None:
    """Interrupt this process where Python drops what is raised."""

    class Finalized:
        def __del__(self) -> None:
            interrupt()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Finalized()


def in_a_task() -> None:
    """Interrupt this process while a task runs that ignores its cancellation."""

    async def ignore() -> None:
        interrupt()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)

    asyncio.run(ignore())


def ignored() -> None:
    """Interrupt this process in code that catches everything."""
    with suppress(BaseException):
        interrupt()


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("lose", [in_a_finalizer, in_a_task, ignored])
def test_an_interrupt_that_gets_lost_ends_the_run(
    declared: list[str], monkeypatch: pytest.MonkeyPatch, lose: Callable[[], None]
) -> None:
    """At the latest before the next check."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    class Losing:
        def pytest_runtest_call(self) -> None:
            lose()

    try:
        arguments = [*declared, "-k", "PRB", "-p", "no:unraisableexception"]
        result = pytest_run.run(
            arguments, verbose=False, modules=("test_probes",), plugins=[Losing()]
        )
        after = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    assert (True, signal.default_int_handler) == (result.interrupted, after)
    assert 1 >= len([check for check in result.checks if check.verdict is not Verdict.NOT_RUN])
