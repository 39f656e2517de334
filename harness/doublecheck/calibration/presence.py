"""Which surfaces a live platform has, before its answers are taken for answers to unknowns.

Any web server answers something at ``/ping``. Without this, its answers would settle unknowns.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from doublecheck.client import preflight
from doublecheck.errors import AbsentSurfaceError, DoubleCheckError, MissingExtraError
from doublecheck.target.facts import Surface

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform

# many servers have /ping, but only an application of the platform has /invoke
_SHOWN_BY = {"application": "invocation"}


def absent_surfaces(platform: Platform, surfaces: Collection[Surface]) -> Mapping[Surface, str]:
    """Return the offered surfaces that nothing shows to be there, with reasons.

    A double has what it offers. Raises AbsentSurfaceError if a live platform shows none of them.
    """
    target = platform.target
    offered = sorted(surface for surface in surfaces if target.offers(surface))
    if target.kind == "double" or not offered:
        return {}
    if importlib.util.find_spec("pytest") is None:
        raise MissingExtraError("pytest, which the checks use,", install="agentdouble[calibrate]")
    from doublecheck.contracts import evidence  # optional: pytest
    from doublecheck.contracts.losses import Patience  # optional: pytest

    def problem_of(surface: Surface) -> DoubleCheckError | None:
        shown_by = _SHOWN_BY.get(surface, surface)
        try:
            patience.repeat(lambda _: evidence.require(platform, shown_by), (DoubleCheckError,))
        except DoubleCheckError as error:
            return error
        return None

    patience = Patience(target)
    problems = {it: problem_of(it) for it in dict.fromkeys(map(preflight.probed, offered))}
    absent = {
        surface: problem
        for surface in offered
        if (problem := problems[preflight.probed(surface)]) is not None
    }
    if len(absent) == len(offered):
        answers = dict.fromkeys(it for error in absent.values() for it in _answers(error))
        raise AbsentSurfaceError(target.url, "a platform", tuple(answers))
    return {surface: _reason(surface, problem) for surface, problem in absent.items()}


def _reason(surface: Surface, problem: DoubleCheckError) -> str:
    if isinstance(problem, AbsentSurfaceError):
        return f"{surface} is not there: {problem}"
    return f"{surface} could not be asked: {problem}"


def _answers(error: DoubleCheckError) -> Collection[str]:
    return error.answers if isinstance(error, AbsentSurfaceError) else (str(error),)
