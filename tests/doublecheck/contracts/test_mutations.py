"""Under each mutation of the double its check fails, and the others of that surface pass."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from agentdouble.sandbox.browser import chromium
from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.verdicts import Verdict
from doublecheck.runner import runner
from doublecheck.target.surfaces import Surface
from doublecheck.unknowns_report import usage
from tests.doublecheck.contracts.mutations import (
    Mutation,
    a2a,
    api_server,
    application,
    control_plane,
    hosting,
    library,
    mcp,
    sandbox,
    services,
)

pytestmark = pytest.mark.once

# The first is of the pytest outside; the second costs more time than most checks.
QUIET = ("-p", "no:faulthandler", "-p", "no:unraisableexception")
RUNTIMES = [id_ for id_, clause in clauses().items() if clause.surface == "runtimes"]
# Each run has a double of its own, which nobody asks what its answers rested on, and which ends
# with the run: to ask it, and to tidy it up, is half of all requests.
UNASKED = ((usage._Journal, "relied_on"), (Leftovers, "remove"))
BROWSER = chromium.find(None) is not None or "CI" in os.environ


@dataclass(frozen=True)
class Table:
    """The mutations of a surface, and the modules that have its checks.

    ``apart`` are clauses whose checks run under the mutations that break them alone, and why.
    """

    mutations: tuple[Mutation, ...]
    modules: tuple[str, ...]
    apart: Mapping[str, str]


TABLES: Mapping[Surface, Table] = {
    "application": Table(
        application.MUTATIONS,
        ("test_invocation", "test_probes"),
        {"INV-09": "starts kernels, which takes longer than all others together"},
    ),
    "api_server": Table(
        api_server.MUTATIONS, ("test_api_server", "test_agent_runs", "test_access"), {}
    ),
    "mcp": Table(mcp.MUTATIONS, ("test_mcp",), {}),
    "services": Table(services.MUTATIONS, ("test_services",), {}),
    "a2a": Table(a2a.MUTATIONS, ("test_a2a",), {}),
    "control_plane": Table(control_plane.MUTATIONS, ("test_control_plane",), {}),
    "sandbox": Table(
        sandbox.MUTATIONS,
        ("test_sandbox", "test_browser"),
        {"SBX-11": "starts a browser, which takes longer than all others together"},
    ),
    "library": Table(
        library.MUTATIONS,
        ("test_decorators", "test_run_code", "test_a2a"),
        {"A2A-05": "starts a process"},
    ),
    "runtimes": Table(
        hosting.MUTATIONS,
        ("test_hosting", "test_access"),
        dict.fromkeys(RUNTIMES, "starts processes"),
    ),
}
SLOW: tuple[Surface, ...] = ("sandbox", "runtimes")  # their checks start kernels and programs
CASES = [
    pytest.param(
        surface, mutation, id=str(mutation), marks=[pytest.mark.slow] if surface in SLOW else []
    )
    for surface, table in TABLES.items()
    for mutation in table.mutations
]


@pytest.mark.parametrize(("surface", "mutation"), CASES)
def test_a_check_fails_where_the_double_is_broken_and_only_there(
    surface: Surface, mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that cannot fail would say nothing by passing, nor one that fails with any other."""
    if mutation.clause == "SBX-11" and not BROWSER:
        pytest.skip(f"needs Chromium: {chromium.INSTALL}")
    table = TABLES[surface]
    broken = (mutation.clause, *mutation.also)
    apart = set(table.apart) - set(broken)
    chosen = [
        id_ for id_, clause in clauses().items() if clause.surface == surface and id_ not in apart
    ]
    errors = mutation.apply(monkeypatch)
    for owner, name in UNASKED:
        monkeypatch.setattr(owner, name, lambda _self: frozenset())

    run = runner.run(["-k", " or ".join(chosen), *QUIET], verbose=False, modules=table.modules)

    told = {clause.id: verdict for clause, verdict in run.verdicts().items()}
    expected = dict.fromkeys(chosen, Verdict.PASSED) | dict.fromkeys(broken, Verdict.FAILED)
    assert expected == told
    assert [] == errors


def test_every_clause_that_has_a_check_has_a_mutation() -> None:
    """And what a mutation breaks besides is of its surface."""
    tables = [(surface, one) for surface, table in TABLES.items() for one in table.mutations]
    elsewhere = [
        str(one)
        for surface, one in tables
        for id_ in (one.clause, *one.also)
        if clauses()[id_].surface != surface
    ]

    assert set(clauses()) == {one.clause for _, one in tables}
    assert [] == elsewhere
