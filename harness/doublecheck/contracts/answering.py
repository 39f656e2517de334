"""Whether the surfaces of a target answer: known before the first check, asked again in doubt."""

from __future__ import annotations

from doublecheck.client import preflight
from doublecheck.errors import DoubleCheckError, NoAnswerError, UnreachableError
from doublecheck.target.surfaces import Surface
from doublecheck.target.target import Target


class Answering:
    """What is known of a target's surfaces.

    A check that got no answer casts doubt on its surface: before the next check of it one
    request tells whether anything answers at all. So a platform that begins to hang in the
    middle does not cost a time limit for each check that is left.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._problems: dict[Surface, DoubleCheckError] = dict(target.problems)
        self._doubted: set[Surface] = set()

    def doubt(self, surface: Surface, error: BaseException) -> None:
        """Hear how a check of a surface ended."""
        if isinstance(error, (NoAnswerError, UnreachableError)):
            self._doubted.add(preflight.probed(surface))

    def require(self, surface: Surface) -> None:
        """Raise what stands in the way of checks of a surface."""
        asked = preflight.probed(surface)
        if asked in self._doubted:
            self._doubted.discard(asked)
            found = preflight.problem(self._target, asked)
            if found is not None:
                self._problems[asked] = found
        if asked in self._problems:
            raise self._problems[asked]
