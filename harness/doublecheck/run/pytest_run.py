"""Run the contract checks with pytest, isolated from the environment, and collect the results.

``main`` runs them in a separate process, and prints a line for each check that begins. The lines go
to the original standard output; all other output goes to standard error. Standard input is the
lifeline: when it closes, because the parent no longer waits or has died, the process interrupts
itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import pytest

from doublecheck import contracts
from doublecheck.contracts import clauses
from doublecheck.contracts.run_result import Run
from doublecheck.core import atomic_files
from doublecheck.reports.collector import Collector
from doublecheck.reports.document import to_document
from doublecheck.reports.report import Report
from doublecheck.target import pytest_options
from doublecheck.target.conversions import from_json
from doublecheck.target.plan import Plan

_FOLDER = Path(contracts.__file__).parent
_UNWANTED = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


@dataclass(frozen=True)
class Selection:
    """The checks to run: ``select`` is an expression of clauses, groups and names of checks.

    If ``strict_should``, a clause that is only recommended can fail the run. ``baseline`` is the
    path of a report whose failures are known.
    """

    select: str | None = None
    strict_should: bool = False
    baseline: str | None = None

    def arguments(self) -> list[str]:
        """Return the pytest options that select them."""
        options = ["--platform-strict-should"] if self.strict_should else []
        options += [] if self.baseline is None else [f"--platform-baseline={self.baseline}"]
        return options if self.select is None else [*options, "-k", clauses.selection(self.select)]

    def modules(self) -> list[str]:
        """Return the modules to collect, [] for all."""
        return [] if self.select is None else clauses.modules_of(self.select)


def run(
    arguments: Sequence[str],
    *,
    verbose: bool,
    plan: Plan | None = None,
    modules: Sequence[str] = (),
    plugins: Sequence[object] = (),
) -> Run:
    """Run the checks with additional pytest options. pytest's own output goes to stderr.

    ``plan`` describes the platform; without it, the options do. ``modules`` are the modules with
    the checks to run, by default all, because collecting takes time. ``plugins`` are pytest plugins
    that follow the progress.

    The working directory has no influence: no ini file, conftest, addopts or plugins except ours
    are used.
    """
    collector = Collector()
    options = [
        *(str(_FOLDER / f"{module}.py") for module in modules),
        *([] if modules else [str(_FOLDER)]),
        f"--config-file={_FOLDER / 'contracts.ini'}",
        f"--rootdir={_FOLDER}",
        f"--confcutdir={_FOLDER}",
        *("-p", "no:cacheprovider", "-p", "doublecheck.plugin"),
        *("--no-header", "--tb=short", "-rN", "-v" if verbose else "-qq"),
    ]
    with _clean_room(), contextlib.redirect_stdout(sys.stderr), _Interrupts() as interrupts:
        shown = (interrupts,) if verbose else (interrupts, _Quiet())
        planned = () if plan is None else (_Planned(plan),)
        ended = pytest.main([*options, *arguments], plugins=[*planned, collector, *shown, *plugins])
    return collector.run(int(ended))


class _Planned:
    """A pytest plugin that gives the run its platform, instead of the options."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[pytest_options.PLAN] = self._plan


class _Interrupts:
    """A pytest plugin that ends the run before the next check if an interrupt got lost.

    Python drops what is raised in a finalizer. ``asyncio.run`` turns an interrupt into the
    cancellation of its task, which code may ignore, unless another handler than Python's is set.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: Any = None

    def __enter__(self) -> _Interrupts:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        signal.default_int_handler(number, frame)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        if self._came:
            raise KeyboardInterrupt


class _Quiet:
    """A pytest plugin that leaves the details of failures to the reports."""

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.TESTS_FAILED:
            session.config.option.tbstyle = "no"  # of the summary; the reports have been made


@contextlib.contextmanager
def _clean_room() -> Iterator[None]:
    environment = dict(os.environ)
    for name in _UNWANTED:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)


def main(report: str, plan: Mapping[str, Any], checks: Mapping[str, Any]) -> None:
    """Run the checks of a plan, which is JSON, and write the report to a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the signal may have been ignored
    _watch(os.dup(0))
    result = Run((), pytest_exit=2, interrupted=True)
    try:
        with os.fdopen(os.dup(1), "w", encoding="utf-8") as channel:
            os.dup2(2, 1)
            chosen = Selection(**checks)
            result = run(
                chosen.arguments(),
                verbose=False,
                plan=from_json(plan),
                modules=chosen.modules(),
                plugins=[ProgressReporter(channel)],
            )
    except KeyboardInterrupt:  # interrupted before pytest began, or after it ended
        pass
    document = to_document(Report("", "double", None, result))
    atomic_files.write(Path(report), json.dumps(document))


def _watch(lifeline: int) -> None:
    """Interrupt this process when its lifeline closes."""

    def watch() -> None:
        while os.read(lifeline, 1):
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


class ProgressReporter:
    """A pytest plugin that prints how many checks have finished, how many there are, and the next."""

    def __init__(self, channel: TextIO) -> None:
        self._channel = channel
        self._chosen = self._begun = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._chosen = len(session.items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        name = nodeid.rpartition("::")[2]
        print(self._begun, self._chosen, name, file=self._channel, flush=True)
        self._begun += 1
