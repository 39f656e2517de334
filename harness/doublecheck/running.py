"""Running the contract checks: pytest in a clean room, and what each check came to."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from doublecheck import contracts
from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.verdicts import CLAUSE, VERDICT, Verdict, of_skip, worst

_FOLDER = Path(contracts.__file__).parent
_UNWANTED = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


@dataclass(frozen=True)
class Check:
    """One check and what it came to; ``reason`` says why, where it did not pass."""

    name: str
    clause: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True)
class Run:
    """What the checks came to; ``pytest_exit`` is how pytest itself ended."""

    checks: tuple[Check, ...]
    pytest_exit: int

    def by_clause(self) -> Mapping[Clause, Sequence[Check]]:
        """Return the checks of each clause that has any, in the specification's order."""
        checked = {
            clause: [check for check in self.checks if check.clause == id_]
            for id_, clause in clauses().items()
        }
        return {clause: checks for clause, checks in checked.items() if checks}

    def verdicts(self) -> Mapping[Clause, Verdict]:
        """Return the verdict on each clause that was checked: the worst of its checks."""
        return {
            clause: worst([check.verdict for check in checks])
            for clause, checks in self.by_clause().items()
        }


def run(arguments: Sequence[str], *, verbose: bool) -> Run:
    """Run the checks with these pytest options on top; pytest's own output goes to stderr.

    Nothing of the folder it is started in has a say: no ini file, no conftest, no addopts, no
    plugin but ours.
    """
    collector = _Collector()
    options = [
        str(_FOLDER),
        f"--config-file={_FOLDER / 'contracts.ini'}",
        f"--rootdir={_FOLDER}",
        f"--confcutdir={_FOLDER}",
        *("-p", "no:cacheprovider", "-p", "doublecheck.plugin"),
        *("--no-header", "--tb=short", "-rN", "-v" if verbose else "-q"),
    ]
    with _clean_room(), contextlib.redirect_stdout(sys.stderr):
        ended = pytest.main([*options, *arguments], plugins=[collector])
    return Run(collector.checks(), int(ended))


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


class _Collector:
    """A pytest plugin that listens to the reports."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def checks(self) -> tuple[Check, ...]:
        return tuple(self._checks.values())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        check = _check(report)
        if check is not None and check.verdict is not Verdict.PASSED:
            self._checks[report.nodeid] = check
        elif check is not None:
            self._checks.setdefault(report.nodeid, check)


def _check(report: pytest.TestReport) -> Check | None:
    """Return what one phase of a check says of it, if anything."""
    told = dict(report.user_properties)
    clause = str(told.get(CLAUSE))
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        return Check(report.nodeid, clause, of_skip(reason), reason)
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = getattr(crash, "message", report.longreprtext)
        return Check(report.nodeid, clause, Verdict(told.get(VERDICT, "error")), reason)
    return Check(report.nodeid, clause, Verdict.PASSED) if report.when == "call" else None
