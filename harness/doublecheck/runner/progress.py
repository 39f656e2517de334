"""The progress of a run of the checks: a line on the terminal, instead of pytest's dots."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence

import pytest
from rich import progress
from rich.console import Console

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
