"""check(): the contract checks from Python and notebooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublecheck.calibration import findings
from doublecheck.calibration.finding import Finding
from doublecheck.calibration.findings import Findings
from doublecheck.client import open_target, transport
from doublecheck.client._sync.platform import Platform
from doublecheck.client.open_target import ConnectArguments
from doublecheck.errors import InterruptedCalibrationError, TargetError
from doublecheck.run import checks_process
from doublecheck.run.platform import connect
from doublecheck.run.progress_bar import Bar
from doublecheck.target.plan import Plan
from doublecheck.values.double import Unknowns, ledger_unknowns

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform
    from doublecheck.reports.report import Report


def check(
    platform: Platform | AsyncPlatform | str | None = None,
    *,
    target: str | None = None,
    only: str | None = None,
    level: str | None = None,
    strict_should: bool = False,
    allow_writes: bool = False,
    examples: int | None = None,
    seed: int | None = None,
    baseline: Report | str | Path | None = None,
) -> Report:
    """Check a platform clause by clause and return the report.

    ``platform`` is an open platform or a URL; alternatively, ``target`` names a target of the
    configuration. Without either, the environment and the configuration decide; by default a double
    is started. ``only`` selects clauses: ``"INV or PRB"``. ``level`` is ``"full"``, the default, or
    ``"smoke"``: a first look, for which nothing has to be deployed. With ``strict_should``, a
    clause that is only recommended can also fail the run. With ``allow_writes``, checks also create
    and delete things on a live platform. Each check tries ``examples`` generated inputs, by default
    6, and 2 on a live platform; the same ``seed`` makes the same ones. The failures of a
    ``baseline``, an earlier report or its JSON file, are known and do not fail the run. The checks
    run in a separate process.

    Raises TargetError, UnreachableError, MissingExtraError, ReportError before the first check,
    InterruptedChecksError, which contains the report so far, and ChecksCrashedError.
    """
    checks_process.require_runnable()
    checks_process.require_consistent(level, strict_should)
    plan = _plan(
        platform, target, allow_writes=allow_writes, level=level, examples=examples, seed=seed
    )
    return checks_process.run_checks(
        plan, only=only, strict_should=strict_should, baseline=baseline
    )


def _plan(
    platform: Platform | AsyncPlatform | str | None,
    target: str | None,
    **of_the_run: Any,
) -> Plan:
    if platform is None:
        return checks_process.plan_of_configuration(target, **of_the_run)
    if target is not None:
        raise TargetError(f"Both a platform and the target {target!r} are given: remove one.")
    if isinstance(platform, str):
        opened, _ = ConnectArguments(platform).open()
    else:
        opened = open_target.target_of(platform)
    return checks_process.plan_of_platform(opened, **of_the_run)


def calibrate(
    platform: Platform | AsyncPlatform | str,
    *,
    only: Collection[str] = (),
    slow: bool = False,
    allow_writes: bool = False,
) -> Findings:
    """Find out how a platform behaves where the specification leaves it open.

    ``only`` holds the ids of the unknowns to probe, by default all. ``slow`` adds the probes that
    take minutes or move the clock of a double; ``allow_writes`` adds those that create something on
    a live platform. Call ``write("profile.toml")`` on the result for a profile that makes a double
    behave the same.

    Raises CalibrationError for an unknown id, UnreachableError, AbsentSurfaceError if a server is
    no platform, and InterruptedCalibrationError, which contains the findings so far.
    """
    ids = findings.ids_of([only] if isinstance(only, str) else only)
    with ExitStack() as stack:
        opened = stack.enter_context(connect(platform)) if isinstance(platform, str) else platform
        target = open_target.require_answer(open_target.target_of(opened))
        allowed = dataclasses.replace(target, allow_writes=target.allow_writes or allow_writes)
        client = stack.enter_context(Platform(allowed, longest_answer_s=transport.LONGEST_ANSWER_S))
        bar, came = stack.enter_context(Bar("unknowns")), list[Finding]()
        try:
            for finding in findings.calibrate(client, slow=slow, only=ids):
                came.append(finding)
                bar.show(len(came), len(ids), finding.unknown)
        except KeyboardInterrupt:
            found_so_far = Findings(came, target=target.url)
            raise InterruptedCalibrationError(found_so_far, len(ids)) from None
    return Findings(came, target=target.url)


def unknowns(platform: Platform | AsyncPlatform | str | None = None) -> Unknowns:
    """Return the ledger of a double. It marks the unknowns that answers relied on.

    Without a platform, return the ledger with a double's default answers. Raises NotADoubleError.
    """
    if platform is None:
        return ledger_unknowns()
    if isinstance(platform, Platform):
        return platform.unknowns()
    opened = (
        connect(platform)
        if isinstance(platform, str)
        else Platform(open_target.target_of(platform))
    )
    with opened as client:
        return client.unknowns()
