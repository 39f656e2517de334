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
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from agentdouble.processes.fork_server import signals
from doublecheck.client import transport
from doublecheck.errors import ChecksCrashedError, DoubleCheckError, InterruptedChecksError
from doublecheck.runner import run_command, subject
from doublecheck.runner.progress_bar import Bar
from doublecheck.runner.subject import Subject
from doublecheck.target.target import Target

if TYPE_CHECKING:
    from doublecheck.reports.report import Report

# The module path is that of this process; it does not contain the folder of the start.
_BEGIN = (
    "import json, sys; order = json.loads(sys.stdin.readline()); sys.path[:] = order['path']; "
    "from doublecheck.runner import child_process; child_process.main(order['arguments'])"
)
_TICK_S = 0.25
_PATIENCE_S = 20.0  # seconds; an interrupted run still stops its double
_LAST_LINES = 8
_READ = 64 * 1024


class ChecksProcess:
    """A run of the checks with some pytest options; use it in a with statement.

    ``chosen`` is the number of its checks, ``ended`` the number of finished ones, and ``at`` the
    running check. ``document`` is its report, after it has arrived.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self.chosen = self.ended = 0
        self.at = ""
        self.document: Mapping[str, Any] | None = None
        self._unread = b""  # stored here, because an interrupt may come between any two lines
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter)
            [sys.executable, "-c", _BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env={**environ, "PY_COLORS": "0"},  # a notebook's kernel requests colours
            start_new_session=True,  # no interrupt of our group reaches it
        )
        self._begin(arguments)

    def advance(self) -> Iterator[None]:
        """Yield after each message, and several times a second, until the run is over.

        Raises ChecksCrashedError if the process ends without a report.
        """
        for line in self._lines():
            if line:
                self._take(json.loads(line))
            yield
        code = self._process.wait()
        if self.document is None:
            raise ChecksCrashedError(code, self.ended, self.chosen, self._last_lines())

    def interrupt(self) -> None:
        """Interrupt the run and wait until it has ended and its results are known.

        If it does not end in time, or at a second interrupt, it is killed.
        """
        until = time.monotonic() + _PATIENCE_S
        try:
            with suppress(BrokenPipeError):  # it died before it got its order
                self._lifeline.close()
            for line in self._lines():
                if line:
                    self._take(json.loads(line))
                elif time.monotonic() > until:
                    break
        except KeyboardInterrupt:  # after a second interrupt, do not wait any longer
            pass
        self._end()

    def __enter__(self) -> ChecksProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None and not self._printed.closed:
            self.interrupt()
        self._end()

    def _begin(self, arguments: Sequence[str]) -> None:
        order = {"path": [one for one in sys.path if one], "arguments": list(arguments)}
        with suppress(BrokenPipeError):  # the process is dead, and its output says why
            self._lifeline.write(json.dumps(order).encode() + b"\n")
            self._lifeline.flush()

    def _end(self) -> None:
        """Kill the process; its fork server then ends all kernels."""
        with suppress(ProcessLookupError, PermissionError):  # macOS denies it if it is ending
            signals.send_to_group(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdout, self._lifeline, self._printed):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    @property
    def _lifeline(self) -> Any:
        return self._process.stdin

    def _take(self, message: Mapping[str, Any]) -> None:
        self.chosen = message.get("chosen", self.chosen)
        self.at = message.get("begun", self.at)
        self.ended += "ended" in message
        self.document = message.get("run", self.document)

    def _lines(self) -> Iterator[bytes]:
        """Yield each line that the process writes, and an empty one after a silent interval."""
        assert self._process.stdout is not None
        channel = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(channel, selectors.EVENT_READ)
            while True:
                line, ends, rest = self._unread.partition(b"\n")
                if ends:
                    self._unread = rest
                    yield line
                elif not selector.select(_TICK_S):
                    yield b""
                elif read := os.read(channel, _READ):
                    self._unread += read
                else:
                    return

    def _last_lines(self) -> list[str]:
        self._printed.seek(0)
        printed = self._printed.read().decode(errors="replace")
        return [line for line in printed.splitlines() if line.strip()][-_LAST_LINES:]


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
