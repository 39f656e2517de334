"""The checks that each level selects."""

from __future__ import annotations

import pytest

from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.verdicts import select
from doublecheck.run import pytest_run

pytestmark = pytest.mark.once

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
