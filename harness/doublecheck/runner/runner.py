"""Run the contract checks with pytest, isolated from the environment, and collect the results."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest
from rich import progress
from rich.console import Console

from doublecheck import contracts
from doublecheck.contracts.run_result import Check, Run
from doublecheck.reports.collector import Collector

__all__ = [
    "Check",
    "Run",
    "run",
]

_AFTER_S = 1.0  # seconds; a shorter run needs no progress
_Status = tuple[str, str, object]


@contextlib.contextmanager
def shown(*, wanted: bool) -> Iterator[Sequence[Progress]]:
    """Yield the pytest plugin that shows progress if stderr is a terminal, else None."""
    if not wanted or not sys.stderr.isatty():
        yield ()
        return
    # a separate stream, because pytest captures stderr while a check runs
    with open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as terminal:  # noqa: PTH123
        console = Console(file=terminal)
        plugin = Progress(console)
        try:
            yield () if console.is_dumb_terminal else (plugin,)
        finally:
            plugin.stop()


class Progress:
    """A pytest plugin that shows the progress of a run and clears it at the end."""

    def __init__(self, console: Console, *, after_s: float = _AFTER_S) -> None:
        self._bar = progress.Progress(
            progress.BarColumn(bar_width=20),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("")
        self._due = time.monotonic() + after_s

    def stop(self) -> None:
        """Remove the progress line."""
        self._bar.stop()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._bar.update(self._task, total=len(session.items))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._bar.update(self._task, description=nodeid.rpartition("::")[2])
        if time.monotonic() >= self._due:
            self._bar.start()

    def pytest_runtest_logfinish(self) -> None:
        self._bar.advance(self._task)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, _Status, _Status]:
        category, _, _ = yield
        return category, "", ""  # it is counted, but prints no dot

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self.stop()


_FOLDER = Path(contracts.__file__).parent
_UNWANTED = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


def run(
    arguments: Sequence[str],
    *,
    verbose: bool,
    modules: Sequence[str] = (),
    plugins: Sequence[object] = (),
) -> Run:
    """Run the checks with additional pytest options; pytest's own output goes to stderr.

    ``modules`` are the modules with the checks to run, by default all, because collecting takes
    time. ``plugins`` are pytest plugins that follow the progress.

    The folder of the start has no influence: no ini file, no conftest, no addopts and no plugins
    except ours are used.
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
    with shown(wanted=not verbose) as bars, _clean_room():
        if bars:
            options += ["-o", "console_output_style=classic"]
        with contextlib.redirect_stdout(sys.stderr):
            ended = pytest.main([*options, *arguments], plugins=[collector, *bars, *plugins])
    return collector.run(int(ended))


@contextlib.contextmanager
def _clean_room() -> Iterator[None]:
    kept = dict(os.environ)
    for name in _UNWANTED:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
