from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from doublecheck import contracts
from doublecheck.contracts.clauses import clauses
from tests.mutants import campaign

MUTANTS = campaign.mutants()
MAY_SURVIVE = 0.03
# All of them take ten minutes of CPU: ``python -m tests.mutants``. Every thirtieth, clause by clause,
# is enough to notice a check that has become blind.
SOME = sorted(range(len(MUTANTS)), key=lambda number: str(MUTANTS[number]))[::30]


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("number", SOME, ids=[str(MUTANTS[number]) for number in SOME])
def test_a_mutant_is_caught(number: int) -> None:
    """By a check of a clause that names the sentence; a survivor has its reason in the table."""
    expected = campaign.EXPECTED if MUTANTS[number].survives else campaign.CAUGHT

    assert expected == campaign.outcome(number), MUTANTS[number].sentence


def test_few_mutants_may_survive() -> None:
    """At most three of a hundred; each says why."""
    survivors = [one for one in MUTANTS if one.survives]

    assert len(survivors) <= MAY_SURVIVE * len(MUTANTS)
    assert 400 <= len(MUTANTS)


def test_every_clause_that_has_a_check_has_mutants() -> None:
    """And each mutant has a name of its own."""
    names = Counter(map(str, MUTANTS))
    text = "".join(path.read_text("utf-8") for path in _checks())
    checked = set(re.findall(r'@clause\(\s*"([\w-]+)"', text))

    assert checked == {one.clause for one in MUTANTS} == set(clauses())
    assert [] == [name for name, count in names.items() if count > 1]


def _checks() -> list[Path]:
    return sorted(Path(contracts.__file__).parent.glob("test_*.py"))
