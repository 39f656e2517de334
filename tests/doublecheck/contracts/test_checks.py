"""Run the contract checks on the double, select them, and collect them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping

import httpx
import openapi_spec_validator  # noqa: F401
import pytest

from agentdouble.core import ledger
from agentdouble.sandbox.browser import chromium
from doublecheck.contracts.clauses import clauses, modules_of
from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict, select
from doublecheck.run import pytest_run
from tests.machine import REQUIRE_ALL

pytestmark = pytest.mark.once


RUNTIMES = tuple(id_ for id_ in clauses() if clauses()[id_].surface == "runtimes")
CHECKED = tuple(id_ for id_ in clauses() if id_ not in RUNTIMES)

QUIET = ("-p", "no:faulthandler")  # of the pytest outside
BROWSER = chromium.find(None) is not None or REQUIRE_ALL in os.environ


@pytest.fixture
def check() -> Callable[..., Run]:
    """Run contract checks in a separate pytest run."""

    def run(*arguments: str) -> Run:
        return pytest_run.run([*arguments, *QUIET], verbose=False)

    return run


def verdicts(run: Run) -> Mapping[str, Verdict]:
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def passed() -> dict[str, Verdict]:
    """Return the verdicts of a run without failures, with or without a browser."""
    verdicts = dict.fromkeys((*CHECKED, *RUNTIMES), Verdict.PASSED)
    return verdicts if BROWSER else verdicts | {"SBX-11": Verdict.NOT_OFFERED}


@pytest.mark.slow
def test_every_check_passes_on_the_double(check: Callable[..., Run]) -> None:
    """Every clause has a check."""
    run = check()

    assert passed() == verdicts(run)
    assert set(clauses()) == set(verdicts(run))
    assert {*passed().values()} == {check.verdict for check in run.checks}


def test_a_group_name_selects_only_its_checks(pytester: pytest.Pytester) -> None:
    """A check whose name happens to contain RUN is not selected."""
    arguments = ("--pyargs", "doublecheck.contracts", "--collect-only")
    recorded = pytester.inline_run(*arguments, *pytest_run.Selection("RUN").arguments())

    items = recorded.getcall("pytest_collection_finish").session.items
    assert {"RUN"} == {dict(item.user_properties)["clause"][:3] for item in items}


def test_a_clause_collects_the_modules_with_its_checks() -> None:
    """Other selections collect all."""
    modules: dict[str, set[str]] = {}
    for module, marks in collected().items():
        for mark in marks:
            modules.setdefault(mark.args[0].id, set()).add(module)

    assert modules.keys() == clauses().keys()
    assert [] == [id_ for id_ in modules if not modules[id_] <= {*modules_of(id_)}]
    assert ["test_probes"] == modules_of("(PRB-01 or PRB-02)")
    assert {*modules_of("PRB")} <= {*modules_of("PRB or INV-04")}
    assert [[]] * 3 == [modules_of(name) for name in ("not PRB", "test_sandbox", "INV or x")]


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
    check: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks do not rely on httpx's default timeout, after which an answer would count as wrong."""
    monkeypatch.setitem(httpx.get.__kwdefaults__, "timeout", httpx.Timeout(1e-9))

    assert {"A2A-05": Verdict.PASSED} == verdicts(check("-k", "A2A-05"))


LIVE = ("--platform-target=live", "--platform-url=http://127.0.0.1:1")


class Collected:
    """A pytest plugin that records the marks of the collected checks by module."""

    def __init__(self) -> None:
        self.marks: dict[str, list[pytest.Mark]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            mark = item.get_closest_marker("clause")
            assert mark is not None
            self.marks.setdefault(item.path.stem, []).append(mark)


def collected(*arguments: str) -> dict[str, list[pytest.Mark]]:
    """Return the marks of the checks of a run, by module."""
    plugin = Collected()
    quiet = ("--collect-only", "-qq", "-p", "no:faulthandler")
    pytest_run.run([*quiet, *arguments], verbose=False, plugins=[plugin])
    return plugin.marks


def test_the_smoke_level_is_small() -> None:
    """It covers each surface of a live platform without a reference application."""
    tests = collected(*LIVE, "--platform-level=smoke")

    marks = [mark for marks in tests.values() for mark in marks]
    surfaces = {"application", "api_server", "mcp", "a2a", "control_plane"}
    assert [] == [mark.args[0].id for mark in marks if mark.kwargs["reference_app"]]
    assert surfaces == {mark.kwargs["surface"] for mark in marks}
    assert len(marks) < 30
    assert [] == [
        mark.args[0].id for mark in marks if mark.kwargs["writes"] and not mark.kwargs["smoke"]
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), set()),
        ((*LIVE, "--platform-reference-app", "--platform-allow-writes"), set()),
        ((*LIVE, "--platform-allow-writes"), {"INV-04", "MCP-03", "MCP-04"}),
        (LIVE, {"API-04", "API-06", "INV-04", "MCP-03", "MCP-04"}),
    ],
)
def test_the_full_level_runs_smoke_checks_only_as_substitutes(
    arguments: tuple[str, ...], expected: set[str]
) -> None:
    """They replace checks that need the reference application or writes."""
    tests = collected(*arguments).get("test_smoke", [])

    clauses_run = {mark.args[0].id for mark in tests}
    assert expected == {id_ for id_ in clauses_run if not id_.startswith("A2A")}


def test_the_quick_level_leaves_out_what_is_slow() -> None:
    """All clauses of the other surfaces have a check."""
    ids = {
        mark.args[0].id for marks in collected("--platform-level=quick").values() for mark in marks
    }

    hosted = {id_ for id_, clause in clauses().items() if clause.surface == "runtimes"}
    a2a = {"DEC-05", "DEC-06", *(id_ for id_ in clauses() if id_.startswith("A2A"))}
    assert {"SBX-03", "SBX-11", *a2a, *hosted} == clauses().keys() - ids


def test_tests_without_a_clause_run_at_every_level(pytester: pytest.Pytester) -> None:
    items = list(pytester.getitems("def test_own(): pass"))

    select(
        items[0].config, items, level="smoke", reference_app=False, writes=False, in_process=False
    )

    assert ["test_own"] == [item.name for item in items]


FEW = "--platform-examples=2"  # the first ones have most in them
BLAMED = (Verdict.FAILED, Verdict.ERROR)


def profiles() -> Iterator[Mapping[str, str]]:
    """Yield choices that cover every built alternative, as many at a time as fit."""
    alternatives = [
        [(id_, alternative.name) for alternative in unknown.alternatives if alternative.built]
        for id_, unknown in ledger.unknowns().items()
    ]
    for chosen in itertools.zip_longest(*alternatives):
        yield dict(pair for pair in chosen if pair is not None)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", list(profiles()), ids=lambda chosen: f"{len(chosen)}-unknowns")
def test_no_check_fails_under_any_alternative(
    chosen: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTDOUBLE_UNKNOWNS", json.dumps(chosen))
    for rate in ("RATE_PER_S", "TOOL_RATE_PER_S"):  # the checks ask faster than by default
        monkeypatch.setenv(f"AGENTDOUBLE_{rate}", "100000")

    run = pytest_run.run([FEW, *QUIET, "-p", "no:unraisableexception"], verbose=False)

    assert {} == {check.name: check.reason for check in run.checks if check.verdict in BLAMED}
    assert 80 < list(run.verdicts().values()).count(Verdict.PASSED)
