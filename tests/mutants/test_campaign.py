from __future__ import annotations

from collections import Counter

import pytest

from doublecheck.contracts.clauses import clauses
from tests.mutants import campaign

MUTANTS = campaign.mutants()
# ``python -m tests.mutants`` runs them all. Every twentieth is enough to notice a check that is blind.
SOME = range(0, len(MUTANTS), 20)


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("number", SOME, ids=[str(MUTANTS[number]) for number in SOME])
def test_mutant_is_caught(number: int) -> None:
    """A check of the clause that it breaks fails."""
    assert campaign.CAUGHT == campaign.outcome(number)


def test_clauses_have_mutants_with_unique_names() -> None:
    names = Counter(map(str, MUTANTS))

    assert {mutant.clause for mutant in MUTANTS} == set(clauses())
    assert [] == [name for name, count in names.items() if count > 1]
