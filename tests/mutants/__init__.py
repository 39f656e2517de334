"""Mutants of the double, each of which breaks one sentence of the specification.

``python -m tests.mutants`` runs them all and prints how many the checks catch, by clause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Mutant:
    """A double that breaks a sentence.

    ``clause`` is the clause that names the ``sentence`` of the specification, and ``also`` are
    others that do; a failed check of one of them catches the mutant. ``change`` is a change on the
    wire (``wire.py``) or a function that patches the double inside. ``survives`` says why no check
    can be expected to see it.
    """

    name: str
    clause: str
    sentence: str
    change: Callable[[pytest.MonkeyPatch], None]
    also: tuple[str, ...] = ()
    survives: str = ""

    def __str__(self) -> str:
        return f"{self.clause}-{self.name}"
