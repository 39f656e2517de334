"""Collect the results of checks from pytest's reports, its own or those of xdist's workers."""

from __future__ import annotations

import datetime as dt
import importlib
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from doublecheck import contracts
from doublecheck.contracts.clauses import MARKER
from doublecheck.contracts.run_result import ROLES, Check, Role, Run
from doublecheck.contracts.traffic import TRAFFIC, Traffic
from doublecheck.contracts.verdicts import (
    CLAUSE,
    OBSERVED,
    REASON,
    ROLE,
    VERDICT,
    Verdict,
    of_skip,
)
from doublecheck.target import pytest_options

_FOLDER = Path(contracts.__file__).resolve().parent


class Collector:
    """A pytest plugin that collects reports; it ignores tests that check no clause.

    Under pytest-xdist it runs in the controller, receives the workers' reports in any order, and
    sorts them in the order of collection.
    """

    def __init__(self) -> None:
        self._started = dt.datetime.now(dt.timezone.utc)
        self._began = time.perf_counter()
        self._chosen: Sequence[str] = ()
        self._outcomes: dict[str, tuple[str, Verdict, str]] = {}
        self._details: dict[str, str] = {}
        self._roles: dict[str, Role] = {}
        self._seconds: dict[str, float] = {}
        self._interrupted = False
        self._strict_should = False
        self._traffic = Traffic()
        self._examples, self._seed = 0, 0

    def run(self, pytest_exit: int) -> Run:
        """Return the results so far."""
        return Run(
            self.checks(),
            int(pytest_exit),
            started=self._started,
            duration_s=round(time.perf_counter() - self._began, 3),
            chosen=len(self._chosen),
            interrupted=self._interrupted,
            strict_should=self._strict_should,
            asked=self._traffic.summed(),
            examples=self._examples,
            seed=self._seed,
        )

    def checks(self) -> tuple[Check, ...]:
        """Return the checks that have a verdict, in the order of collection."""
        place = {id_: index for index, id_ in enumerate(self._chosen)}
        found = sorted(self._outcomes, key=lambda id_: place.get(id_, len(place)))
        return tuple(
            Check(
                _name(id_),
                *self._outcomes[id_],
                duration_s=round(self._seconds[id_], 4),
                details=self._details.get(id_, ""),
                role=self._roles.get(id_, "check"),
            )
            for id_ in found
        )

    def pytest_configure(self, config: pytest.Config) -> None:
        self._strict_should = bool(config.getoption("platform_strict_should", False))

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        from doublecheck.contracts import inputs  # it imports Hypothesis

        self._examples, self._seed = inputs.chosen(pytest_options.plan_of(session.config))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # under xdist only the workers have items
            self._choose([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._choose(ids)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._interrupted = isinstance(excinfo.value, KeyboardInterrupt)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        clause = dict(report.user_properties).get(CLAUSE) or _marked(report.nodeid)
        if clause is None:
            return
        told = dict(report.user_properties).get(TRAFFIC)
        if report.when == "teardown" and isinstance(told, dict):
            self._traffic.add(Traffic.from_dict(told))
        id_ = report.nodeid
        self._roles[id_] = _role(report)
        self._seconds[id_] = self._seconds.get(id_, 0.0) + report.duration
        outcome = _outcome(report)
        before = self._outcomes.get(id_)
        if outcome is not None and (before is None or before[1] is Verdict.PASSED):
            self._outcomes[id_] = (str(clause), *outcome)
            self._details[id_] = report.longreprtext if report.failed else ""

    def _choose(self, ids: Sequence[str]) -> None:
        self._chosen = [id_ for id_ in ids if _home(id_) is not None]


def _role(report: pytest.TestReport) -> Role:
    told = dict(report.user_properties).get(ROLE)
    return next((role for role in ROLES if role == told), "check")


def _outcome(report: pytest.TestReport) -> tuple[Verdict, str] | None:
    """Return the verdict of one phase of a check, or None."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        return of_skip(reason), reason
    if report.failed:
        told = dict(report.user_properties)
        reason = str(told.get(REASON, report.longreprtext))
        return Verdict(told.get(VERDICT, Verdict.ERROR)), reason
    if report.when != "call":
        return None
    seen = [str(value) for name, value in report.user_properties if name == OBSERVED]
    return (Verdict.OBSERVED, "; ".join(seen)) if seen else (Verdict.PASSED, "")


def _name(nodeid: str) -> str:
    """Return a check's name with its module, which pytest omits if only that module is selected."""
    home, (path, _, rest) = _home(nodeid), nodeid.partition("::")
    return f"{home or Path(path).stem}.py::{rest}"


def _marked(nodeid: str) -> str | None:
    """Find the clause of a check by its name: the report of a crashed worker lacks it."""
    home = _home(nodeid)
    if home is None:
        return None
    module = importlib.import_module(f"{contracts.__name__}.{home}")
    function = getattr(module, _function(nodeid))
    marks = [mark for mark in function.pytestmark if mark.name == MARKER]
    return str(marks[0].args[0].id)


def _home(nodeid: str) -> str | None:
    """Return the module of a check by its name; None for any other test."""
    path = nodeid.partition("::")[0]
    home = _homes().get(_function(nodeid))
    return home if Path(path).stem in ("", home) else None


def _function(nodeid: str) -> str:
    return nodeid.partition("::")[2].partition("[")[0]


@cache
def _homes() -> Mapping[str, str]:
    """Return the module of each check."""
    return {
        name: path.stem
        for path in _FOLDER.glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
