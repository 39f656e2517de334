"""Whether the surfaces of a target answer, and are there: what each check needs to know first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from doublecheck.client import preflight
from doublecheck.contracts import evidence
from doublecheck.contracts.levels import SMOKE
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import (
    AbsentSurfaceError,
    BrokenOfferError,
    DoubleCheckError,
    NoAnswerError,
    UnreachableError,
)

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform
    from doublecheck.contracts.clauses import Clause
    from doublecheck.target.surfaces import Surface
    from doublecheck.target.target import Target

_WITHOUT_EVIDENCE: frozenset[Surface] = frozenset({"library", "services", "runtimes"})


class SurfaceStates:
    """Whether the surfaces of a target answer, and are there.

    If a check gets no answer, its surface is in doubt: before the next check of this surface, one
    request finds out whether the surface answers at all. So a platform that hangs during the run
    does not cost a time limit for each remaining check. Before the first check of a surface of a
    live platform, an answer must show that it is there.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._problems: dict[Surface, DoubleCheckError] = dict(target.problems)
        self._doubted: set[Surface] = set()
        self._looked: dict[str, DoubleCheckError | None] = {}

    def doubt(self, surface: Surface, error: BaseException) -> None:
        """Record the result of a check of a surface."""
        if isinstance(error, (NoAnswerError, UnreachableError)):
            self._doubted.add(preflight.probed(surface))

    def is_silent(self, surface: Surface) -> bool:
        """Whether a surface that is in doubt does not answer at all."""
        if preflight.probed(surface) not in self._doubted:
            return False
        try:
            self.require(surface)
        except DoubleCheckError:
            return True
        return False

    def require(self, surface: Surface) -> None:
        """Raise the problem that prevents checks of a surface."""
        asked = preflight.probed(surface)
        if asked in self._doubted:
            self._doubted.discard(asked)
            found = preflight.problem(self._target, asked)
            if found is not None:
                self._problems[asked] = found
        if asked in self._problems:
            raise self._problems[asked]

    def require_evidence(self, platform: Platform, clause: Clause, surface: Surface) -> None:
        """Raise an error if nothing shows that a live platform has the surface of a check.

        A surface that was only assumed is not offered then, unless none of them is there.
        """
        if self._target.kind == "double" or surface in _WITHOUT_EVIDENCE:
            return
        found = self._look(platform, evidence.surface_asked(clause.id, preflight.probed(surface)))
        if found is None:
            return
        if not isinstance(found, AbsentSurfaceError):
            raise found
        if self._target.offers_assumed and not self._nothing_there(platform):
            pytest.skip(f"{Verdict.NOT_OFFERED.value}: {found}")
        raise BrokenOfferError(found) if self._breaks_an_offer else found

    @property
    def _breaks_an_offer(self) -> bool:
        return self._target.level == SMOKE and not self._target.offers_assumed

    def _look(self, platform: Platform, asked: str) -> DoubleCheckError | None:
        """Return why a surface cannot be checked, or None."""
        if asked not in self._looked:
            try:
                evidence.require(platform, asked)
                self._looked[asked] = None
            except DoubleCheckError as error:
                self._looked[asked] = error
        return self._looked[asked]

    def _nothing_there(self, platform: Platform) -> bool:
        """Whether no surface of the platform can be asked anything."""
        asked = {preflight.probed(one) for one in self._target.offered - _WITHOUT_EVIDENCE}
        return all(self._look(platform, one) for one in sorted(asked - self._problems.keys()))
