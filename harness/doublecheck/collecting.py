"""Collecting what checks come to from pytest's reports, its own or those of xdist's workers."""

from __future__ import annotations

import datetime as dt
import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from doublecheck import contracts
from doublecheck.contracts.clauses import MARKER, Clause
from doublecheck.runs import Check, Run
from doublecheck.verdicts import CLAUSE, OBSERVED, VERDICT, Verdict, of_skip

_FOLDER = Path(contracts.__file__).resolve().parent


class Collector:
    """A pytest plugin that listens to the reports; tests that check no clause pass it by.

    Under pytest-xdist it stands where the workers' reports arrive, in whatever order, and puts
    them in that of the collection.
    """

    def __init__(self) -> None:
        self._started = dt.datetime.now(dt.timezone.utc)
        self._began = time.perf_counter()
        self._root = Path.cwd()
        self._chosen: Sequence[str] = ()
        self._outcomes: dict[str, tuple[str, Verdict, str]] = {}
        self._seconds: dict[str, float] = {}
        self._interrupted = False

    def run(self, pytest_exit: int) -> Run:
        """Return what has come out so far."""
        return Run(
            self.checks(),
            int(pytest_exit),
            started=self._started,
            duration_s=round(time.perf_counter() - self._began, 3),
            chosen=len(self._chosen),
            interrupted=self._interrupted,
        )

    def checks(self) -> tuple[Check, ...]:
        """Return the checks that came to something, in the order of the collection."""
        place = {id_: index for index, id_ in enumerate(self._chosen)}
        found = sorted(self._outcomes, key=lambda id_: place.get(id_, len(place)))
        return tuple(
            Check(_name(id_), *self._outcomes[id_], duration_s=round(self._seconds[id_], 4))
            for id_ in found
        )

    def pytest_configure(self, config: pytest.Config) -> None:
        self._root = config.rootpath

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # under xdist the workers have them
            self._choose([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._choose(ids)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._interrupted = isinstance(excinfo.value, KeyboardInterrupt)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        clause = self._clause(report)
        if clause is None:
            return
        id_ = report.nodeid
        self._seconds[id_] = self._seconds.get(id_, 0.0) + report.duration
        outcome = _outcome(report)
        before = self._outcomes.get(id_)
        if outcome is not None and (before is None or before[1] is Verdict.PASSED):
            self._outcomes[id_] = (clause, *outcome)

    def _choose(self, ids: Sequence[str]) -> None:
        self._chosen = [id_ for id_ in ids if self._is_ours(id_)]

    def _is_ours(self, nodeid: str) -> bool:
        return (self._root / nodeid.partition("::")[0]).resolve().parent == _FOLDER

    def _clause(self, report: pytest.TestReport) -> str | None:
        """Return the clause that a check told, or in whose name a worker crashed."""
        told = dict(report.user_properties).get(CLAUSE)
        if told is not None:
            return str(told)
        return _marked(report.nodeid) if self._is_ours(report.nodeid) else None


def _outcome(report: pytest.TestReport) -> tuple[Verdict, str] | None:
    """Return what one phase of a check says of it, if anything."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        return of_skip(reason), reason
    if report.failed:
        told = dict(report.user_properties)
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = getattr(crash, "message", report.longreprtext)
        return Verdict(told.get(VERDICT, Verdict.ERROR)), reason
    if report.when != "call":
        return None
    seen = [str(value) for name, value in report.user_properties if name == OBSERVED]
    return (Verdict.OBSERVED, "; ".join(seen)) if seen else (Verdict.PASSED, "")


def _name(nodeid: str) -> str:
    """Return a check's name without the folder, which differs from machine to machine."""
    path, colons, rest = nodeid.partition("::")
    return path.rpartition("/")[2] + colons + rest


def _marked(nodeid: str) -> str | None:
    """Return the clause that a check is marked with, by its name alone."""
    path, _, rest = nodeid.partition("::")
    module = importlib.import_module(f"{contracts.__name__}.{Path(path).stem}")
    function = getattr(module, rest.partition("[")[0], None)
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == MARKER and isinstance(mark.args[0], Clause):
            return mark.args[0].id
    return None
