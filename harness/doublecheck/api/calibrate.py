"""calibrate(): find out how a deployment behaves where the specification leaves it open."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING

from agentdouble import ledger
from agentdouble.errors import LedgerError
from doublecheck.api.connect import connect
from doublecheck.calibration import findings
from doublecheck.calibration.findings import Finding, Findings
from doublecheck.client import open_target
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import CalibrationError, InterruptedCalibrationError
from doublecheck.runner.progress_bar import Bar
from doublecheck.runner.subject import target_of

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform


def calibrate(
    platform: Platform | AsyncPlatform | str,
    *,
    only: Collection[str] = (),
    slow: bool = False,
    allow_writes: bool = False,
) -> Findings:
    """Find out how a platform behaves where the specification leaves it open.

    ``only`` are the ids of the unknowns to probe, by default all. ``slow`` adds the probes that
    take minutes or move the clock of a double; ``allow_writes`` adds those that create something on
    a live platform. Call ``write("profile.toml")`` on the result for a profile that makes a double
    behave the same.

    Raises CalibrationError for an unknown that does not exist, UnreachableError, and
    InterruptedCalibrationError, which contains the findings so far.
    """
    wanted = _wanted([only] if isinstance(only, str) else only)
    with ExitStack() as stack:
        found = stack.enter_context(connect(platform)) if isinstance(platform, str) else platform
        target = open_target.require_answer(target_of(found))
        allowed = dataclasses.replace(target, allow_writes=target.allow_writes or allow_writes)
        asked = stack.enter_context(Platform(allowed))
        bar, came = stack.enter_context(Bar("unknowns")), list[Finding]()
        try:
            for finding in findings.calibrate(asked, slow=slow, only=wanted):
                came.append(finding)
                bar.show(len(came), len(wanted), finding.unknown)
        except KeyboardInterrupt:
            found_so_far = Findings(came, target=target.url)
            raise InterruptedCalibrationError(found_so_far, len(wanted)) from None
    return Findings(came, target=target.url)


def _wanted(only: Collection[str]) -> Collection[str]:
    """Return the unknowns to probe: by default all that have alternatives."""
    try:
        named = [ledger.find(id_).id for id_ in only]
    except LedgerError as error:
        raise CalibrationError(str(error)) from None
    return named or [id_ for id_, one in ledger.unknowns().items() if one.alternatives]
