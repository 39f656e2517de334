"""Run the checks of a platform object in a separate process.

pytest takes over the streams of its process, and a notebook's kernel has a running loop and shows
everything that is printed. So the checks run in another process: it gets the keys in the
environment, and sends its progress line by line.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import os
import threading
from typing import TYPE_CHECKING, Any

from doublecheck.client import transport
from doublecheck.errors import DoubleCheckError, InterruptedChecksError
from doublecheck.runner import run_command, subject
from doublecheck.runner.checks_process import ChecksProcess
from doublecheck.runner.progress_bar import Bar
from doublecheck.runner.subject import Subject
from doublecheck.target.target import Target

if TYPE_CHECKING:
    from doublecheck.reports.report import Report


def check_target(
    target: Target,
    *,
    only: str | None = None,
    level: str | None = None,
    strict_should: bool = False,
    cancelled: threading.Event | None = None,
    **of_the_run: Any,
) -> Report:
    """Check a platform and return the report; see ``doublecheck.check``.

    Set ``cancelled`` to interrupt the checks. ``of_the_run`` are fields of the target that the run
    sets.
    """
    require_runnable()
    require_consistent(level, strict_should)
    found = subject.from_target(target, level=level, **of_the_run)
    return run_checks(found, only=only, strict_should=strict_should, cancelled=cancelled)


async def check_target_async(target: Target, **given: Any) -> Report:
    """Check a platform in a thread; a cancelled call waits until the checks have ended."""
    cancelled, context = threading.Event(), contextvars.copy_context()
    check = functools.partial(check_target, target, **given, cancelled=cancelled)
    checks = asyncio.get_running_loop().run_in_executor(None, context.run, check)
    with transport.interruptible():
        try:
            return await asyncio.shield(checks)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.wait({checks})
            raise


def require_runnable() -> None:
    """Raise DoubleCheckError if checks cannot run in a separate process here."""
    run_command.require_pytest()
    if not hasattr(os, "killpg"):
        raise DoubleCheckError(
            "check() ends the process of its checks together with everything that it has started. "
            "This system has no way to do that. 'doublecheck run' runs the same checks here."
        )


def require_consistent(level: str | None, strict_should: bool) -> None:
    """Raise TargetError for a level with an argument that contradicts it."""
    from doublecheck.contracts import verdicts  # this module needs pytest

    verdicts.require_consistent(level, strict_should, lambda name: name.replace("-", "_"))


def run_checks(
    subject: Subject,
    *,
    only: str | None,
    strict_should: bool,
    cancelled: threading.Event | None = None,
) -> Report:
    """Run the checks; raise InterruptedChecksError if they are interrupted or cancelled."""
    choice = [] if only is None else run_command.selection(only)
    strict = ["--platform-strict-should"] if strict_should else []
    arguments = [*subject.arguments, *strict, *choice]
    with ChecksProcess(arguments, subject.environ) as process, Bar("contract checks") as bar:
        try:
            for _ in process.advance():
                bar.show(process.ended, process.chosen, process.at)
                if cancelled is not None and cancelled.is_set():
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            process.interrupt()
            raise InterruptedChecksError(_report(process, subject)) from None
    report = _report(process, subject)
    if not report.run.checks:
        raise run_command.nothing_matches(f"only={only!r}", "only='INV'")
    return report


def _report(process: ChecksProcess, subject: Subject) -> Report:
    from doublecheck.contracts.run_result import Run
    from doublecheck.reports.document import from_document  # this module needs pytest
    from doublecheck.reports.report import Report

    if process.document is None:  # interrupted before there were any results
        run = Run((), pytest_exit=2, interrupted=True)
        return Report(subject.name, subject.kind, subject.url, run)
    report = from_document(process.document)
    return dataclasses.replace(report, name=subject.name, kind=subject.kind, url=subject.url)
