"""Mutants: platforms that break one clause of the contract each, which its checks must notice.

``wire`` changes requests and answers in front of a double, ``changes`` has the changes that tables
share, and the other modules are tables: by clause, the name and the change of each mutant. None
touches the double inside. ``python -m tests.mutants`` runs them all and prints, by clause, how
many the checks notice. Newer mutants have a witness: requests that show, without the checks, that
the platform is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from doublecheck.client._sync.platform import Platform
from tests.mutants.wire import Change, installed

Breaks = Change | Sequence[Change] | Callable[[pytest.MonkeyPatch], None]
Witness = Callable[[Platform], None]


@dataclass(frozen=True)
class Witnessed:
    """What breaks a clause, and its witness, which raises for the broken platform only."""

    breaks: Breaks
    witness: Witness


@dataclass(frozen=True)
class Mutant:
    """A platform that breaks a clause; ``breaks`` are changes on the wire or of public names.

    ``table`` is the module that it is in.
    """

    table: str
    clause: str
    name: str
    breaks: Breaks
    witness: Witness | None = None

    def __str__(self) -> str:
        return f"{self.clause}-{self.name}"

    @property
    def changes(self) -> Sequence[Change]:
        """The changes on the wire; none if it changes public names."""
        if isinstance(self.breaks, Change):
            return (self.breaks,)
        return self.breaks if isinstance(self.breaks, Sequence) else ()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Make every double that starts from now on break the clause."""
        if callable(self.breaks):
            self.breaks(patch)
        else:
            installed(patch, self.changes)
