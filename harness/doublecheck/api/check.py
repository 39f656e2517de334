"""check(): the contract checks from Python and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublecheck.client.find_target import Wanted
from doublecheck.errors import TargetError
from doublecheck.runner import check_target, subject

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform
    from doublecheck.client._sync.platform import Platform
    from doublecheck.reports.report import Report


def check(
    platform: Platform | AsyncPlatform | str | None = None,
    *,
    target: str | None = None,
    only: str | None = None,
    k: str | None = None,
    level: str | None = None,
    strict_should: bool = False,
    allow_writes: bool = False,
    examples: int | None = None,
    seed: int | None = None,
) -> Report:
    """Check a platform clause by clause and return the report.

    ``platform`` is an open platform or a URL; alternatively, ``target`` names a target of the
    configuration. Without either, the environment and the configuration decide; by default a double
    is started. ``only`` selects clauses: ``"INV or PRB"``; ``k`` is
    another name for it. ``level`` is ``"full"``, the default, or ``"smoke"``: a first look, for which
    nothing has to be deployed. With ``strict_should``, a clause that is
    only recommended can also fail the run. With ``allow_writes``, checks also create and delete
    things on a live platform. Each check tries ``examples`` generated inputs, by default 6, and 2 on
    a live platform; the same ``seed`` makes the same ones. The checks run in a separate process.

    Raises TargetError, UnreachableError, MissingExtraError before the first check,
    InterruptedChecksError, which contains the report so far, and ChecksCrashedError.
    """
    check_target.require_runnable()
    check_target.require_consistent(level, strict_should)
    found = _subject(
        platform, target, allow_writes=allow_writes, level=level, examples=examples, seed=seed
    )
    return check_target.run_checks(found, only=only or k, strict_should=strict_should)


def _subject(
    platform: Platform | AsyncPlatform | str | None,
    target: str | None,
    **of_the_run: Any,
) -> subject.Subject:
    if platform is None:
        return subject.from_configuration(target, **of_the_run)
    if target is not None:
        raise TargetError(
            f"Both a platform and the target {target!r} are given: check one at a time."
        )
    if not isinstance(platform, str):
        found = subject.target_of(platform)
        return subject.from_target(found, **of_the_run)
    found, _ = Wanted(platform).open()
    return subject.from_target(found, **of_the_run)
