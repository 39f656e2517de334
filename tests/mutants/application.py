"""Mutants of application."""

from __future__ import annotations

from tests.mutants import Mutant

MUTANTS: tuple[Mutant, ...] = ()
