"""Run the contract checks against a mutant."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from doublecheck import contracts
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.verdicts import Verdict
from doublecheck.runner import runner
from doublecheck.unknowns_report import usage
from tests.mutants import Mutant

CAUGHT, SURVIVED, EXPECTED = "caught", "survived", "expected to survive"
TABLES = (
    "application",
    "answers",
    "streams",
    "probes",
    "api_server",
    "sessions",
    "runs",
    "access",
    "mcp",
    "mcp_keys",
    "mcp_protocol",
    "mcp_schemas",
    "services",
    "a2a",
    "a2a_tasks",
    "control_plane",
    "envelopes",
    "sandbox",
    "isolation",
    "workbench",
    "library",
    "decorators",
    "hosting",
)
# The first is of the pytest outside; the second costs more time than most checks.
QUIET = ("-p", "no:faulthandler", "-p", "no:unraisableexception", "-x")
# Each run has a double of its own, which ends with the run: nobody needs to tidy it up.
UNASKED = ((usage._Journal, "relied_on"), (Leftovers, "remove"))


def mutants() -> Sequence[Mutant]:
    """Return the mutants of all tables."""
    return [one for table in TABLES for one in import_module(f"tests.mutants.{table}").MUTANTS]


def verdicts(mutant: Mutant) -> dict[str, Verdict]:
    """Return the verdicts of the clauses that name the sentence which a mutant breaks."""
    chosen = (mutant.clause, *mutant.also)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()):
        mutant.change(patch)
        for owner, name in UNASKED:
            patch.setattr(owner, name, lambda _self: frozenset())
        run = runner.run(
            ["-k", " or ".join(chosen), *QUIET], verbose=False, modules=_modules(chosen)
        )
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def outcome(number: int) -> str:
    """Return ``caught``, or what else became of the mutant with this number, in words."""
    mutant = mutants()[number]
    told = verdicts(mutant)
    if not told:
        return "broken: no check ran"
    if Verdict.FAILED in told.values():
        return CAUGHT
    if mutant.survives:
        return EXPECTED
    others = [f"{id_} {one.value}" for id_, one in told.items() if one is not Verdict.PASSED]
    return f"{SURVIVED} ({', '.join(others)})" if others else SURVIVED


def _modules(chosen: Sequence[str]) -> list[str]:
    return sorted({module for id_ in chosen for module in _modules_of_clauses()[id_]})


@cache
def _modules_of_clauses() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in Path(contracts.__file__).parent.glob("test_*.py"):
        for id_ in re.findall(r'@clause\(\s*"([\w-]+)"', path.read_text("utf-8")):
            found.setdefault(id_, set()).add(path.stem)
    return found
