"""Mutations of the double, by the surface that they break."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Mutation:
    """What breaks the double so that a clause's check fails.

    ``also`` are the clauses of that surface whose checks fail with it, because they promise the
    same or stand on it; every other check of the surface passes.
    """

    clause: str
    break_it: Callable[[pytest.MonkeyPatch], None]
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.clause}-{self.break_it.__name__}"
