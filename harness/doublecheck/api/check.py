"""check(): the contract checks from Python and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    strict_should: bool = False,
    allow_writes: bool = False,
) -> Report:
    """Check a platform clause by clause and return the report.

    ``platform`` is an open platform or a URL; alternatively, ``target`` names a target of the
    configuration. Without either, the environment and the configuration decide; by default a double
    is started. ``only`` selects clauses: ``"INV or PRB"``. With ``strict_should``, a clause that is
    only recommended can also fail the run. With ``allow_writes``, checks also create and delete
    things on a live platform. The checks run in a separate process.

    Raises TargetError, UnreachableError, MissingExtraError before the first check,
    InterruptedChecksError, which contains the report so far, and ChecksCrashedError.
    """
    check_target.require_runnable()
    found = _subject(platform, target, allow_writes=allow_writes)
    return check_target.run_checks(found, only=only, strict_should=strict_should)


def _subject(
    platform: Platform | AsyncPlatform | str | None, target: str | None, *, allow_writes: bool
) -> subject.Subject:
    if platform is None:
        return subject.from_configuration(target, allow_writes=allow_writes)
    if target is not None:
        raise TargetError(
            f"Both a platform and the target {target!r} are given: check one at a time."
        )
    if not isinstance(platform, str):
        return subject.from_target(subject.target_of(platform), allow_writes=allow_writes)
    found, _ = Wanted(platform).open()
    return subject.from_target(found, allow_writes=allow_writes)
