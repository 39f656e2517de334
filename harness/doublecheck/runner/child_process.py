"""The process in which the checks are carried out, and how it tells what comes of them.

It tells lines of JSON on what was its standard output; whatever else is printed goes to
standard error. Standard input is its lifeline: when that closes, because nobody waits any more
or because who started it is dead, it interrupts itself.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import pytest

from doublecheck.reports import document
from doublecheck.reports.report import Report
from doublecheck.runner import runner as running


def main(arguments: Sequence[str]) -> None:
    """Carry out the checks with these pytest options and tell the run."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been ignored
    _hold(os.dup(0))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as channel:
        os.dup2(2, 1)
        telling = Telling(channel)
        run = running.run(arguments, verbose=False, plugins=[telling])
        telling.tell(run=document.document(Report("", "double", None, run)))


def _hold(lifeline: int) -> None:
    """Interrupt this process when its lifeline closes."""

    def watch() -> None:
        while os.read(lifeline, 1):
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


class Telling:
    """A pytest plugin that tells how far the checks are."""

    def __init__(self, channel: TextIO) -> None:
        self._channel = channel

    def tell(self, **told: Mapping[str, Any] | int | str) -> None:
        """Write one line."""
        print(json.dumps(told), file=self._channel, flush=True)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.tell(chosen=len(session.items))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell(begun=nodeid.rpartition("::")[2])

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.tell(ended=nodeid.rpartition("::")[2])
