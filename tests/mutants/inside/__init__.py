"""Mutants that patch the double's own functions, one and more for each clause.

Each is built for the clause it names, so the sentence is the clause's.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doublecheck.contracts.clauses import find
from tests.mutants import Mutant


def inside(clause: str, change: Callable[[pytest.MonkeyPatch], None]) -> Mutant:
    """Return the mutant that a function makes of the double; the function names it."""
    return Mutant(f"inside_{change.__name__}", clause, find(clause).text, change)
