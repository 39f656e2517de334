"""The process of the checks: runs pytest, and prints a line for each check that begins.

The lines go to the original standard output; all other output goes to standard error. Standard
input is the lifeline: when it closes, because the parent no longer waits or has died, this process
interrupts itself.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import pytest

from doublecheck.contracts.run_result import Run
from doublecheck.core import atomic_files
from doublecheck.reports.document import to_document
from doublecheck.reports.report import Report
from doublecheck.run import pytest_run


def main(report: str, arguments: Sequence[str]) -> None:
    """Run the checks with these pytest options and write the report to a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the signal may have been ignored
    _watch(os.dup(0))
    run = Run((), pytest_exit=2, interrupted=True)
    try:
        with os.fdopen(os.dup(1), "w", encoding="utf-8") as channel:
            os.dup2(2, 1)
            run = pytest_run.run(arguments, verbose=False, plugins=[ProgressReporter(channel)])
    except KeyboardInterrupt:  # before pytest began, or after it ended
        pass
    document = to_document(Report("", "double", None, run))
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
