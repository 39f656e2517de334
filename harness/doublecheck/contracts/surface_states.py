"""Whether the surfaces of a target exist and answer, before and while they are checked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from doublecheck.client import preflight
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import evidence
from doublecheck.contracts.clauses import Clause
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.verdicts import SMOKE, Verdict
from doublecheck.errors import (
    AbsentSurfaceError,
    DoubleCheckError,
    NoAnswerError,
    UnreachableError,
)
from doublecheck.target.facts import Surface
from doublecheck.target.target import Target

_WITHOUT_EVIDENCE: frozenset[Surface] = frozenset({"library", "services", "runtimes"})


class SurfaceStates:
    """Whether the surfaces of a target exist and answer.

    If a check gets no answer, its surface is in doubt: one request before the next check of this
    surface finds out whether it still answers. So a platform that hangs during the run does not
    cost a timeout per remaining check. On a live platform, an answer must show that a surface
    exists before its first check.
    """

    def __init__(self, target: Target, patience: Patience) -> None:
        self._target = target
        self._patience = patience
        self._problems: dict[Surface, DoubleCheckError] = dict(target.problems)
        self._doubted: set[Surface] = set()
        self._evidence: dict[str, DoubleCheckError | None] = {}

    def is_silent(self, surface: Surface, error: BaseException) -> bool:
        """Whether a surface stopped answering, after a check of it failed with this error."""
        if not isinstance(error, (NoAnswerError, UnreachableError)):
            return False
        self._doubted.add(preflight.probed(surface))
        try:
            self.require(surface)
        except DoubleCheckError:
            return True
        return False

    def require(self, surface: Surface) -> None:
        """Raise the problem that prevents checks of a surface."""
        probed = preflight.probed(surface)
        if probed in self._doubted:
            self._doubted.discard(probed)
            problem = preflight.problem(self._target, probed)
            if problem is not None:
                self._problems[probed] = problem
        if probed in self._problems:
            raise self._problems[probed]

    def require_evidence(
        self, platform: Platform, clause: Clause, surface: Surface, routes: Sequence[str] = ()
    ) -> None:
        """Raise an error if nothing shows that a live platform has the surface of a check.

        A surface that was only assumed then counts as not offered, unless none of them exists. The
        routes of the clause, and those in ``routes``, are needed as well; if a declared surface
        lacks them, the check fails.
        """
        if self._target.kind == "double" or surface in _WITHOUT_EVIDENCE:
            return
        # probes exist without an entrypoint
        needed = "invocation" if clause.id.startswith("INV") else preflight.probed(surface)
        routes = [*routes, *clause.routes]
        for name in (needed, *routes):
            problem = self._problem(platform, name)
            if not isinstance(problem, AbsentSurfaceError):
                if problem is None or name in routes:
                    continue
                raise problem
            assumed = self._target.offers_assumed
            if assumed and (name in routes or not self._nothing_there(platform)):
                pytest.skip(f"{Verdict.NOT_OFFERED.value}: {problem}")
            problem.offered = not assumed and (name in routes or self._target.level == SMOKE)
            raise problem

    def _problem(self, platform: Platform, surface: str) -> DoubleCheckError | None:
        """Return why there is no evidence of a surface, or None."""
        if surface not in self._evidence:
            self._evidence[surface] = None
            try:
                self._patience.repeat(
                    lambda _: evidence.require(platform, surface), (DoubleCheckError,)
                )
            except DoubleCheckError as error:
                self._evidence[surface] = error
        return self._evidence[surface]

    def _nothing_there(self, platform: Platform) -> bool:
        """Whether none of the platform's surfaces can be checked."""
        probed = {preflight.probed(name) for name in self._target.offered - _WITHOUT_EVIDENCE}
        return all(self._problem(platform, name) for name in sorted(probed - self._problems.keys()))
