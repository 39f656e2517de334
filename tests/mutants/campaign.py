"""Run the contract checks against a mutant."""

from __future__ import annotations

import contextlib
import io
import pkgutil
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import tests.mutants as package
from doublecheck import contracts
from doublecheck.compare import pytest_usage
from doublecheck.contracts import examples, wire
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.reference import executor
from doublecheck.contracts.verdicts import VERDICT, Verdict
from doublecheck.runner import runner
from tests.mutants import Mutant, watched

CAUGHT, SURVIVED, EXPECTED, BROKEN = "caught", "survived", "expected to survive", "broken"
_NO_TABLES = ("__main__", "campaign", "test_campaign")
# The first is of the pytest outside; the second costs more time than most checks.
QUIET = ("-p", "no:faulthandler", "-p", "no:unraisableexception")
PATIENCE_S = 3.0  # with a mutant that holds a stream back: a double in this process is no cloud
# Each run has a double of its own, which ends with the run: nobody needs to tidy it up.
UNASKED = ((pytest_usage._Journal, "relied_on"), (Leftovers, "remove"))


@cache
def mutants() -> Sequence[Mutant]:
    """Return the mutants of all tables, which are the modules beside that have any."""
    modules = sorted(one.name for one in pkgutil.walk_packages(package.__path__, "tests.mutants."))
    tables = [import_module(name) for name in modules if not name.endswith(_NO_TABLES)]
    return [one for table in tables for one in getattr(table, "MUTANTS", ())]


def verdicts(mutant: Mutant) -> dict[str, Verdict]:
    """Return the verdicts of the clauses that name the sentence which a mutant breaks.

    Raises RuntimeError for a mutant that has errors of its own: it would make any check fail.
    """
    chosen = (mutant.clause, *mutant.also)
    errors: list[str] = []
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()):
        for module in (wire, executor):
            patch.setattr(module, "READ_WITHIN_S", PATIENCE_S)
        with watched.changes_of(patch, errors):
            mutant.change(patch)
        for owner, name in UNASKED:
            patch.setattr(owner, name, lambda _self: frozenset())
        patch.setattr(examples, "SHRINK_CALLS", 0)
        run = runner.run(
            ["-k", " or ".join(chosen), *QUIET],
            verbose=False,
            modules=modules_of(chosen),
            plugins=[_StopWhenCaught()],
        )
    if errors:
        raise RuntimeError(errors[0])
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


class _StopWhenCaught:
    """A pytest plugin that ends a run with the first check that fails (an error is no failure)."""

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (VERDICT, Verdict.FAILED.value) in report.user_properties:
            self._session.shouldfail = "caught"


def outcome(number: int) -> str:
    """Return ``caught``, or what else became of the mutant with this number, in words."""
    mutant = mutants()[number]
    try:
        told = verdicts(mutant)
    except Exception as error:
        return f"{BROKEN}: {error}"
    if not told:
        return f"{BROKEN}: no check ran"
    if Verdict.FAILED in told.values():
        return CAUGHT
    if mutant.survives:
        return EXPECTED
    others = [f"{id_} {one.value}" for id_, one in told.items() if one is not Verdict.PASSED]
    return f"{SURVIVED} ({', '.join(others)})" if others else SURVIVED


def modules_of(chosen: Iterable[str]) -> list[str]:
    """Return the modules that have the checks of these clauses."""
    return sorted({module for id_ in chosen for module in _modules_of_clauses()[id_]})


@cache
def _modules_of_clauses() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in Path(contracts.__file__).parent.glob("test_*.py"):
        for id_ in re.findall(r'@clause\(\s*"([\w-]+)"', path.read_text("utf-8")):
            found.setdefault(id_, set()).add(path.stem)
    return found
