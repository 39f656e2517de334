"""Run the contract checks against a mutant."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from doublecheck.compare import journal_reader
from doublecheck.contracts import clauses, engine, wire
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.reference import executor
from doublecheck.contracts.verdicts import VERDICT, Verdict
from doublecheck.run import pytest_run
from tests.mutants import (
    Mutant,
    Witnessed,
    agents,
    agreements,
    application,
    borders,
    callers,
    counts,
    decorators,
    edges,
    headers,
    keys,
    languages,
    library,
    lifetimes,
    negotiation,
    order,
    partial,
    protocols,
    repetition,
    retries,
    sandbox,
    values,
)

CAUGHT, SURVIVED, BROKEN = "caught", "survived", "broken"
# The first is of the pytest outside; the second costs more time than most checks.
QUIET = ("-p", "no:faulthandler", "-p", "no:unraisableexception")
PATIENCE_S = 3.0  # with a mutant that holds a stream back
# Each run has a double of its own, which ends with the run: nobody needs to tidy it up.
UNUSED = ((journal_reader.JournalReader, "relied_on"), (Leftovers, "remove_sandboxes"))


@cache
def mutants() -> Sequence[Mutant]:
    """Return the mutants of all tables."""
    tables = (
        *(application, agents, sandbox, protocols, library),
        *(callers, edges, repetition, borders, order),
        *(partial, headers, counts, retries, values, lifetimes),
        *(negotiation, languages, agreements, decorators, keys),
    )
    return [
        _mutant(table.__name__.rpartition(".")[2], clause, name, entry)
        for table in tables
        for clause, mutants in table.TABLE.items()
        for name, entry in mutants.items()
    ]


def _mutant(table: str, clause: str, name: str, entry: Any) -> Mutant:
    if isinstance(entry, Witnessed):
        return Mutant(table, clause, name, entry.breaks, entry.witness)
    return Mutant(table, clause, name, entry)


def verdicts(mutant: Mutant) -> dict[str, Verdict]:
    """Return the verdicts of the clause that a mutant breaks."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()):
        for module in (wire, executor):
            patch.setattr(module, "READ_WITHIN_S", PATIENCE_S)
        for owner, name in UNUSED:
            patch.setattr(owner, name, lambda _self: frozenset())
        patch.setattr(engine, "SHRINK_CALLS", 0)
        mutant.install(patch)
        run = pytest_run.run(
            ["-k", mutant.clause, *QUIET],
            verbose=False,
            modules=clauses.modules_of(mutant.clause),
            plugins=[_StopWhenCaught()],
        )
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


class _StopWhenCaught:
    """Stop pytest at the first check that fails (an error is not a failure)."""

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (VERDICT, Verdict.FAILED.value) in report.user_properties:
            self._session.shouldfail = "caught"


def outcome(number: int) -> str:
    """Return ``caught``, or describe what happened to the mutant with this number."""
    try:
        result = verdicts(mutants()[number])
    except Exception as error:
        return f"{BROKEN}: {error!r}"
    if not result:
        return f"{BROKEN}: no check ran"
    if Verdict.FAILED in result.values():
        return CAUGHT
    others = [f"{id_} {mark.value}" for id_, mark in result.items() if mark is not Verdict.PASSED]
    return f"{SURVIVED} ({', '.join(others)})" if others else SURVIVED
