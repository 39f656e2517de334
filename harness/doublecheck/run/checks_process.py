"""Run the checks of a platform object in a separate process.

pytest takes over the streams of its process, and a notebook's kernel has a running loop and shows
everything that is printed. So the checks run in another process: it reads what to do, with the
keys, from its standard input, and prints a line for each check that begins. A bar shows its
progress.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from agentdouble.processes.fork_server import processes
from doublecheck.client import open_target, transport
from doublecheck.errors import ChecksCrashedError, DoubleCheckError, InterruptedChecksError
from doublecheck.run import command
from doublecheck.run.progress_bar import Bar
from doublecheck.target.conversions import plan_of_target, to_json
from doublecheck.target.plan import Plan
from doublecheck.target.target import Target

if TYPE_CHECKING:
    from doublecheck.reports.report import Report
    from doublecheck.run.pytest_run import Selection

# The module path is that of this process; it does not contain the initial folder.
_BEGIN = (
    "import json, sys; order = json.loads(sys.stdin.readline()); sys.path[:] = order.pop('path'); "
    "from doublecheck.run import pytest_run; pytest_run.main(**order)"
)
_PATIENCE_S = 20.0  # seconds; an interrupted run still stops its double
_LAST_LINES = 8
# from a pytest run or a kernel in this process; or they would name another platform
_UNWANTED = ("PYTEST_", "JPY_", "DOUBLECHECK_", "PLATFORM_")


class ChecksProcess:
    """A run of the checks of a plan. Use it in a with statement."""

    def __init__(self, plan: Plan, checks: Selection, known: str = "") -> None:
        """Start the process. ``known`` is the JSON of a baseline."""
        self._folder = tempfile.TemporaryDirectory(prefix="doublecheck-")
        self._report = Path(self._folder.name, "report.json")
        self._printed = Path(self._folder.name, "printed.txt")
        if known:
            file = Path(self._folder.name, "baseline.json")
            file.write_text(known, "utf-8")
            checks = dataclasses.replace(checks, baseline=str(file))
        order = {
            "path": [entry for entry in sys.path if entry],
            "report": str(self._report),
            "plan": to_json(plan),
            "checks": dataclasses.asdict(checks),
        }
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(_UNWANTED)
        }
        with self._printed.open("wb") as printed:
            self._process = subprocess.Popen(  # noqa: S603 (this interpreter)
                [sys.executable, "-c", _BEGIN],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                encoding="utf-8",
                env={**inherited, "PY_COLORS": "0"},  # a notebook's kernel requests colours
                start_new_session=True,  # an interrupt of our process group does not reach it
            )
        # other users can read arguments, and some the environment, but not this pipe
        with suppress(BrokenPipeError):  # it has crashed, which document() reports
            self._lifeline.write(json.dumps(order) + "\n")
            self._lifeline.flush()

    @property
    def _lifeline(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _channel(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def progress(self) -> Iterator[tuple[int, int, str]]:
        """Yield the number of finished checks, of all checks, and the next one's name."""
        for line in self._channel:
            ended, chosen, name = line.split(maxsplit=2)
            yield int(ended), int(chosen), name.strip()
        self._process.wait()

    def interrupt(self) -> None:
        """End the run early. Its report then says that it was interrupted."""
        with suppress(BrokenPipeError):  # the process crashed before it read what to do
            self._lifeline.close()

    def document(self) -> Mapping[str, Any]:
        """Return the report. Raise ChecksCrashedError if the process ended without one."""
        if not self._report.exists():
            printed = self._printed.read_text("utf-8", errors="replace").splitlines()
            lines = [line for line in printed if line.strip()]
            raise ChecksCrashedError(self._process.wait(), lines[-_LAST_LINES:])
        document: Mapping[str, Any] = json.loads(self._report.read_text("utf-8"))
        return document

    def __enter__(self) -> ChecksProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._folder.cleanup()

    def end(self) -> None:
        """Wait a short time until the run has ended by itself, then kill it."""
        self.interrupt()
        # after a second interrupt, do not wait any longer
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            self._process.wait(_PATIENCE_S)
        with suppress(ProcessLookupError, PermissionError):  # macOS denies it during the end
            # its fork server ends the kernels
            processes.send_to_group(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._channel.close()


def check_target(
    target: Target,
    *,
    only: str | None = None,
    level: str | None = None,
    strict_should: bool = False,
    baseline: Report | str | Path | None = None,
    on_begun: Callable[[ChecksProcess], object] = lambda _process: None,
    **of_the_run: Any,
) -> Report:
    """Check a platform and return the report. See ``doublecheck.check``.

    ``on_begun`` gets the process of the checks; ``of_the_run`` are fields of the target that the
    run sets.
    """
    require_runnable()
    require_consistent(level, strict_should)
    plan = plan_of_platform(target, level=level, **of_the_run)
    return run_checks(
        plan, only=only, strict_should=strict_should, baseline=baseline, on_begun=on_begun
    )


def plan_of_platform(target: Target, **of_the_run: Any) -> Plan:
    """Return the plan of an open platform or a URL. Raise an error if it cannot be used.

    ``of_the_run`` are fields of the target that the run sets; None leaves one unchanged.
    """
    open_target.require_answer(target)
    chosen = {name: value for name, value in of_the_run.items() if value}
    return plan_of_target(dataclasses.replace(target, **chosen))


def plan_of_configuration(target: str | None, **of_the_run: Any) -> Plan:
    """Return the plan of the platform that the configuration names, by default a double.

    ``of_the_run`` are options of ``doublecheck run`` by name; None leaves one unchanged. Raises an
    error if the platform cannot be used.
    """
    options = {"target": target, **{name: value or None for name, value in of_the_run.items()}}
    run = command.RunOptions(options, spelled=str)
    command.require_target(run)
    return run.plan


async def check_target_async(target: Target, **options: Any) -> Report:
    """Check a platform in a thread. A cancelled call waits until the checks have ended."""
    processes: list[ChecksProcess] = []
    context = contextvars.copy_context()
    check = functools.partial(check_target, target, **options, on_begun=processes.append)
    checks = asyncio.get_running_loop().run_in_executor(None, context.run, check)
    with transport.interruptible():
        try:
            return await asyncio.shield(checks)
        except asyncio.CancelledError:
            for process in processes:
                process.interrupt()
            await asyncio.wait({checks})
            checks.exception()  # the caller knows that they were interrupted
            raise


def require_runnable() -> None:
    """Raise DoubleCheckError if checks cannot run in a separate process here."""
    command.require_pytest()
    if not hasattr(os, "killpg"):
        raise DoubleCheckError(
            "check() must end the process of its checks with all its children, which this "
            "system does not support. Use 'doublecheck run' instead."
        )


def require_consistent(level: str | None, strict_should: bool) -> None:
    """Raise TargetError if an argument contradicts the level."""
    from doublecheck.contracts import verdicts  # optional: pytest

    verdicts.require_consistent(level, strict_should, lambda name: name.replace("-", "_"))


def run_checks(
    plan: Plan,
    *,
    only: str | None,
    strict_should: bool,
    baseline: Report | str | Path | None = None,
    on_begun: Callable[[ChecksProcess], object] = lambda _process: None,
) -> Report:
    """Run the checks. Raise InterruptedChecksError if they are interrupted."""
    from doublecheck.contracts import selections  # optional: pytest
    from doublecheck.reports import document  # optional: pytest
    from doublecheck.reports.baseline import report_of  # optional: pytest
    from doublecheck.run.pytest_run import Selection  # optional: pytest

    if only is not None:
        selections.require(only, f"only={only!r}")
    if isinstance(baseline, (str, Path)):
        baseline = report_of(Path(baseline), plan.name)
    known = "" if baseline is None else document.render([baseline])
    with ChecksProcess(plan, Selection(only, strict_should), known) as process:
        on_begun(process)
        try:
            with Bar("contract checks") as bar:
                for ended, chosen, name in process.progress():
                    bar.show(ended, chosen, name)
        except KeyboardInterrupt:
            process.end()
        report = dataclasses.replace(
            document.from_document(process.document()),
            name=plan.name,
            kind=plan.kind,
            url=plan.value("url"),
        )
    if report.run.interrupted:
        raise InterruptedChecksError(report)
    if not report.run.checks:
        raise selections.nothing_matches(f"only={only!r}")
    return report
