"""check(): the contract checks from Python and notebooks."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doublecheck.api.progress_bar import Bar
from doublecheck.client import transport
from doublecheck.client.find_target import Wanted
from doublecheck.errors import DoubleCheckError, InterruptedChecksError, TargetError
from doublecheck.runner import run_command as checking
from doublecheck.runner import subject
from doublecheck.runner.checks_process import Process
from doublecheck.runner.subject import Subject

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
    """Check a platform clause by clause and return what came out.

    ``platform`` is one in hand or the URL of one; ``target`` names one of the configuration
    instead. Without either it is what the environment and the configuration name, else a double
    of its own. ``only`` chooses among the clauses: ``"INV or PRB"``. What is only recommended
    fails the run with ``strict_should``; with ``allow_writes`` checks also make and delete on a
    live platform. They run in a process of their own.

    Raises TargetError, UnreachableError, MissingExtraError before the first check,
    InterruptedChecksError, which has the report of what was carried out, and
    ChecksCrashedError.
    """
    wanted = _Wanted(target, only, strict_should, allow_writes)
    return _check(platform, wanted, threading.Event())


async def check_async(
    platform: AsyncPlatform, *, only: str | None, strict_should: bool, allow_writes: bool
) -> Report:
    """Check a platform as ``check()`` does, in a loop that goes on meanwhile.

    Whoever cancels this interrupts the checks, and waits until they have ended.
    """
    wanted = _Wanted(None, only, strict_should, allow_writes)
    given_up, context = threading.Event(), contextvars.copy_context()
    work = functools.partial(context.run, _check, platform, wanted, given_up)
    checks = asyncio.get_running_loop().run_in_executor(None, work)
    with transport.interruptible():
        try:
            return await asyncio.shield(checks)
        except asyncio.CancelledError:
            given_up.set()
            await asyncio.wait({checks})
            raise


@dataclass(frozen=True)
class _Wanted:
    """What is to be checked how, as ``check()`` takes it."""

    target: str | None
    only: str | None
    strict_should: bool
    allow_writes: bool


def _check(
    platform: Platform | AsyncPlatform | str | None, wanted: _Wanted, given_up: threading.Event
) -> Report:
    checking.require_pytest()
    _require_process_groups()
    about = _subject(platform, wanted.target, allow_writes=wanted.allow_writes)
    report = _carried_out(about, [*about.arguments, *_arguments(wanted)], given_up)
    if not report.run.checks:
        raise checking.nothing_matches(f"only={wanted.only!r}", "only='INV'")
    return report


def _arguments(wanted: _Wanted) -> Iterator[str]:
    if wanted.strict_should:
        yield "--platform-strict-should"
    if wanted.only is not None:
        yield from ("-k", wanted.only)


def _carried_out(about: Subject, arguments: Sequence[str], given_up: threading.Event) -> Report:
    """Return what comes of the checks; raise InterruptedChecksError, also if they are given up."""
    with Process(arguments, about.environ) as process, Bar("contract checks") as bar:
        try:
            for _ in process.advance():
                bar.show(process.ended, process.chosen, process.at)
                if given_up.is_set():
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            process.interrupt()
            raise InterruptedChecksError(_report(process, about)) from None
    return _report(process, about)


def _require_process_groups() -> None:
    if not hasattr(os, "killpg"):
        raise DoubleCheckError(
            "check() ends the process of its checks with all that it has started, which this system "
            "has no way for. 'doublecheck run' carries out the same checks here."
        )


def _subject(
    platform: Platform | AsyncPlatform | str | None, target: str | None, *, allow_writes: bool
) -> Subject:
    if platform is None:
        return subject.configured(target, allow_writes=allow_writes)
    if target is not None:
        raise TargetError(
            f"Both a platform and the target {target!r} are given: check one at a time."
        )
    if not isinstance(platform, str):
        return subject.in_hand(subject.target_of(platform), allow_writes=allow_writes)
    found, _ = Wanted(platform).open()
    return subject.in_hand(found, allow_writes=allow_writes)


def _report(process: Process, about: Subject) -> Report:
    from doublecheck.contracts.run_result import Run
    from doublecheck.reports import parse as reading  # which needs pytest
    from doublecheck.reports.report import Report

    if process.document is None:  # interrupted before it came to anything
        return Report(about.name, about.kind, about.url, Run((), pytest_exit=2, interrupted=True))
    report = reading.report(process.document)
    return dataclasses.replace(report, name=about.name, kind=about.kind, url=about.url)
