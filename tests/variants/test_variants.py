"""Platforms that answer in other forms that the specification leaves open are not blamed."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.client.doubles import serving_double
from doublecheck.contracts import evidence
from doublecheck.contracts.clauses import clauses, modules_of
from doublecheck.contracts.conftest import REFERENCE_AGENTS
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import DoubleCheckError
from doublecheck.run import pytest_run
from doublecheck.target.facts import Surface
from tests.mutants import campaign
from tests.mutants.wire import Change, installed
from tests.variants import a2a, agents, application, protocols, sandbox

pytestmark = [pytest.mark.once, pytest.mark.slow]

QUIET = ("-p", "no:faulthandler", "-p", "no:unraisableexception")
FEW = "--platform-examples=2"  # the first ones have most in them
BLAMED = (Verdict.FAILED, Verdict.ERROR)


@dataclass(frozen=True)
class Variant:
    """A platform that answers in another form."""

    surface: Surface
    name: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return f"{self.surface}-{self.name}"


TABLE: dict[Surface, dict[str, Any]] = {
    "application": application.APPLICATION,
    "api_server": agents.API_SERVER,
    "control_plane": sandbox.CONTROL_PLANE,
    "sandbox": sandbox.SANDBOX,
    "mcp": protocols.MCP_SERVERS,
    "services": protocols.SERVICES,
    "a2a": a2a.A2A_VARIANTS,
    "library": {"results_in_other_forms": list(sandbox.OUTPUTS.values())},
}
VARIANTS = tuple(
    Variant(surface, name, (change,) if isinstance(change, Change) else tuple(change))
    for surface, variants in TABLE.items()
    for name, change in variants.items()
)
# CI tries every eighth.
SOME = VARIANTS[:: 8 if os.environ.get("CI") else 1]
APART = {"SBX-11", "INV-09"}  # start browsers and kernels
# What checks of other clauses meet as well; real implementations do so.
OF_ONE_CLAUSE = (
    "INV-05-send_newlines_as_they_are",
    "PRB-06-answer_a_little_late",
)


@pytest.mark.parametrize("variant", SOME, ids=str)
def test_legal_variant_passes_checks(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, variant.changes)

    run = _checked(variant.surface, monkeypatch)

    assert {} == {check.name: check.reason for check in run.checks if check.verdict in BLAMED}
    assert Verdict.PASSED in run.verdicts().values()


@pytest.mark.parametrize("surface", ["application", "api_server", "control_plane", "mcp", "a2a"])
def test_legal_variants_are_evidence_of_their_surface(
    surface: Surface, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live platform that answers in their form has the surface."""
    changes: list[Change] = []
    installed(monkeypatch, changes)
    missing = {}

    apps = reference_apps({surface})
    with (
        serving_double(*apps, reference_app=True, agents=REFERENCE_AGENTS) as target,
        Platform(target) as platform,
    ):
        for variant in (it for it in VARIANTS if it.surface == surface):
            changes[:] = variant.changes
            try:
                evidence.require(platform, surface)
            except DoubleCheckError as error:
                missing[variant.name] = str(error)

    assert {} == missing


@pytest.mark.parametrize("name", OF_ONE_CLAUSE)
def test_fault_fails_only_its_clause(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other clauses of its surface pass, though their checks encounter it."""
    (mutant,) = (mutant for mutant in campaign.mutants() if str(mutant) == name)
    mutant.install(monkeypatch)

    run = _checked(clauses()[mutant.clause].surface, monkeypatch)

    verdicts = run.verdicts().items()
    assert [mutant.clause] == [clause.id for clause, verdict in verdicts if verdict in BLAMED]


def test_a_run_without_a_message_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both routes have one cause, and the model of sessions does not blame other clauses."""
    (mutant,) = (it for it in campaign.mutants() if it.name == "run_without_a_message")
    mutant.install(monkeypatch)

    findings = _checked("api_server", monkeypatch).findings()

    expected = [(("API-12",), "A run without newMessage is answered 200.")]
    assert expected == [(finding.clauses, finding.cause) for finding in findings]


def test_variants_have_unique_names() -> None:
    names = Counter(map(str, VARIANTS))

    assert [] == [name for name, count in names.items() if count > 1]
    assert 400 <= len(VARIANTS)


def _checked(surface: Surface, patch: pytest.MonkeyPatch) -> Run:
    """Run every check of a surface against a double."""
    chosen = {id_ for id_, clause in clauses().items() if clause.surface == surface}
    for owner, name in campaign.UNUSED:
        patch.setattr(owner, name, lambda _self: frozenset())
    return pytest_run.run(
        ["-k", " or ".join(sorted(chosen - APART)), FEW, *QUIET],
        verbose=False,
        modules=modules_of(" or ".join(chosen - APART)),
    )
