"""The process of the checks: it runs pytest, and writes lines of JSON about its progress.

The lines go to the original standard output; all other output goes to standard error. Standard
input is the lifeline: when it closes, because the parent no longer waits or is dead, this process
interrupts itself.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import pytest

from doublecheck.reports.document import to_document
from doublecheck.reports.report import Report
from doublecheck.runner import runner


def main(arguments: Sequence[str]) -> None:
    """Run the checks with these pytest options and report the run."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the signal may have been ignored
    _watch(os.dup(0))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as channel:
        os.dup2(2, 1)
        reporter = ProgressReporter(channel)
        run = runner.run(arguments, verbose=False, plugins=[reporter])
        reporter.send(run=to_document(Report("", "double", None, run)))


def _watch(lifeline: int) -> None:
    """Interrupt this process when its lifeline closes."""

    def watch() -> None:
        while os.read(lifeline, 1):
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


class ProgressReporter:
    """A pytest plugin that reports the progress of the checks."""

    def __init__(self, channel: TextIO) -> None:
        self._channel = channel

    def send(self, **message: Mapping[str, Any] | int | str) -> None:
        """Write one line."""
        print(json.dumps(message), file=self._channel, flush=True)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.send(chosen=len(session.items))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.send(begun=nodeid.rpartition("::")[2])

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.send(ended=nodeid.rpartition("::")[2])
