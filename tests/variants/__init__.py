"""Legal variants of the double: they change the form of an answer and not its meaning.

A platform may answer so by the specification, and no check may blame it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from doublecheck.target.surfaces import Surface


@dataclass(frozen=True)
class Variant:
    """A double that answers in another form; ``change`` makes every new double answer so."""

    name: str
    surface: Surface
    change: Callable[[pytest.MonkeyPatch], None]

    def __str__(self) -> str:
        return f"{self.surface}-{self.name}"
