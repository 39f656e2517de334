"""Run the contract checks on the double, select them, and collect them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import httpx

# what pytester imports it forgets, and the validator's parts then do not know each other
import openapi_spec_validator  # noqa: F401
import pytest

from agentdouble.sandbox.browser import chromium
from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.run_result import Run as CheckRun
from doublecheck.contracts.verdicts import Verdict
from doublecheck.run import command, pytest_run

pytestmark = pytest.mark.once

CHECKED = (
    *(f"INV-{number:02d}" for number in range(1, 10)),
    *(f"PRB-{number:02d}" for number in range(1, 8)),
    *(f"CTL-{number:02d}" for number in range(1, 9)),
    *(f"SBX-{number:02d}" for number in range(1, 13)),
    *(f"RUN-{number:02d}" for number in range(1, 4)),
    *(f"DEC-{number:02d}" for number in range(1, 7)),
    *(f"MCP-{number:02d}" for number in range(1, 7)),
    *(f"SVC-{number:02d}" for number in range(1, 4)),
    *(f"A2A-{number:02d}" for number in range(1, 6)),
    *(f"API-{number:02d}" for number in range(1, 19)),
    "AUT-01",
)

RUNTIMES = (*(f"HST-{number:02d}" for number in range(1, 6)), "AUT-02", "AUT-03")

QUIET = ("-p", "no:faulthandler")  # of the pytest outside
BROWSER = chromium.find(None) is not None or "CI" in os.environ


@pytest.fixture
def check() -> Callable[..., CheckRun]:
    """Run contract checks in a separate pytest run."""

    def run(*arguments: str) -> CheckRun:
        return pytest_run.run([*arguments, *QUIET], verbose=False)

    return run


def verdicts(run: CheckRun) -> Mapping[str, Verdict]:
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def passed() -> dict[str, Verdict]:
    """Return the verdicts of a run without failures, with or without a browser."""
    verdicts = dict.fromkeys((*CHECKED, *RUNTIMES), Verdict.PASSED)
    return verdicts if BROWSER else verdicts | {"SBX-11": Verdict.NOT_OFFERED}


@pytest.mark.slow
def test_every_check_passes_on_the_double(check: Callable[..., CheckRun]) -> None:
    """Every clause has a check."""
    run = check()

    assert passed() == verdicts(run)
    assert set(clauses()) == set(verdicts(run))
    assert {*passed().values()} == {check.verdict for check in run.checks}


def test_a_group_name_selects_only_its_checks(pytester: pytest.Pytester) -> None:
    """A check whose name happens to contain RUN is not selected."""
    arguments = ("--pyargs", "doublecheck.contracts", "--collect-only")
    recorded = pytester.inline_run(*arguments, *command.selection("RUN"))

    items = recorded.getcall("pytest_collection_finish").session.items
    assert {"RUN"} == {dict(item.user_properties)["clause"][:3] for item in items}


def test_a_check_must_name_exactly_one_clause(pytester: pytest.Pytester) -> None:
    """A check with two clauses is refused at collection."""
    folder = pytester.mkpydir("more")
    (folder / "conftest.py").write_text("from doublecheck.contracts.conftest import *\n")
    (folder / "test_two.py").write_text(
        "from doublecheck.contracts.clauses import clause\n\n"
        "@clause('INV-01')\n@clause('INV-02')\ndef test_two(): pass\n"
    )

    result = pytester.runpytest_inprocess(str(folder))

    result.stderr.fnmatch_lines(["*test_two must name exactly one clause, not 2.*"])


@pytest.mark.slow
def test_a_busy_machine_does_not_fail_the_library(
    check: Callable[..., CheckRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks do not rely on httpx's default timeout, after which an answer would count as wrong."""
    monkeypatch.setitem(httpx.get.__kwdefaults__, "timeout", httpx.Timeout(1e-9))

    assert {"A2A-05": Verdict.PASSED} == verdicts(check("-k", "A2A-05"))
