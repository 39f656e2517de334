"""Mutants of a2a."""

from __future__ import annotations

from tests.mutants import Mutant

MUTANTS: tuple[Mutant, ...] = ()
