"""The plugin of a trial: a saved test that notes what its calls come to, and asserts nothing.

It runs in a process of its own, in the folder of the test, so with the project's own conftest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doublecheck.target import pytest_options

NOTES = "DOUBLECHECK_TRIAL_NOTES"
FIXTURE = "saved_test_trial"


class Trial:
    """Notes the values of expressions, each with its number, as lines of JSON."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes

    def note(self, number: int, read: Callable[[], Any]) -> None:
        """Note what an expression comes to, or that it raises."""
        try:
            value = read()
        except Exception as error:
            self.write(number=number, raised=f"{type(error).__name__}: {error}")
        else:
            self.write(number=number, value=value)

    def write(self, **line: Any) -> None:
        """Write one line."""
        with self._notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, default=repr) + "\n")


@pytest.fixture
def saved_test_trial() -> Trial:
    """The trial of this process."""
    return Trial(Path(os.environ[NOTES]))


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    """Ask no platform that runs: a trial resets its double, and a live one may cost something."""
    if pytest_options.runs_already(config):
        url = pytest_options.plan_of(config).value("url")
        _write(failed=f"the tests here ask the platform at {url}, and not a double of their own")
        pytest.exit("no double of its own", returncode=pytest.ExitCode.USAGE_ERROR)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note why a trial ended early."""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _write(failed=str(crash.message if crash else report.longreprtext).partition("\n")[0])


def _write(**line: Any) -> None:
    Trial(Path(os.environ[NOTES])).write(**line)
