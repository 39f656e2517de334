"""--platform-sweep: repeat each test under each alternative of each unknown it relied on.

The double keeps running, because its ledger can be changed meanwhile: it gets the alternative, the
test runs, and the answers are reset. Fixtures of the module and the session also stay; those of the
test are created again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol  # noqa: TID251 (as every plugin that repeats tests)

from agentdouble.core import profiles
from agentdouble.errors import ProfileError
from doublecheck.compare.alternatives import alternatives, choose
from doublecheck.compare.pytest_relied_on import RELIED_ON, SWEPT, Noting
from doublecheck.errors import DoubleCheckError


class Sweeping:
    """Runs tests under alternatives as well, and adds the results to their reports."""

    def __init__(self, noting: Noting) -> None:
        self._noting = noting

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, then again under each alternative. Only the first run is reported."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        following = _NextItem(item, nextitem, lambda: bool(self._choices(item)))
        reports = _run(item, following)
        swept = self._sweep(item, nextitem, _outcome(reports))
        if swept:
            next(
                (report for report in reports if report.when == "call"), reports[0]
            ).user_properties.append((SWEPT, json.dumps(swept)))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _choices(self, item: pytest.Item) -> list[tuple[str, str]]:
        """Return the alternatives to the answers that the last test relied on."""
        relied_on = dict(item.user_properties).get(RELIED_ON)
        if self._noting.target is None or not relied_on:
            return []
        return list(alternatives(str(relied_on).split(", "), self._noting.in_force))

    def _sweep(
        self, item: pytest.Item, nextitem: pytest.Item | None, before: str
    ) -> list[dict[str, Any]]:
        choices, in_force = self._choices(item), self._noting.in_force
        properties = list(item.user_properties)
        swept = []
        for number, (id_, alternative) in enumerate(choices, start=1):
            following = _NextItem(item, nextitem, partial(int.__gt__, len(choices), number))
            outcome = self._under({id_: alternative}, item, following)
            choice = {"unknown": id_, "in_force": in_force[id_], "alternative": alternative}
            swept.append({**choice, "before": before, "outcome": outcome})
        item.user_properties[:] = properties
        return swept

    def _under(self, choice: dict[str, str], item: pytest.Item, following: _NextItem) -> str:
        """Run a test while the double behaves as an alternative says, and return the result."""
        target = self._noting.target
        assert target is not None, "an alternative that no double supports"
        choose(target, choice)
        try:
            return _outcome(_run(item, following))
        finally:
            with contextlib.suppress(DoubleCheckError):  # the double may have stopped
                choose(target, {})


class _NextItem:
    """A stand-in for the next test, by which pytest decides what to tear down.

    pytest calls it after a test. While the test still has to run ``again``, the fixtures that it
    shares with other tests stay.
    """

    def __init__(
        self, item: pytest.Item, nextitem: pytest.Item | None, again: Callable[[], bool]
    ) -> None:
        self._item = item
        self._next = nextitem
        self._again = again

    def listchain(self) -> list[Any]:
        """Return the nodes, from the session down, that are still needed (the name is pytest's)."""
        if self._again():
            return self._item.listchain()[:-1]
        return [] if self._next is None else self._next.listchain()


def _run(item: pytest.Item, following: _NextItem) -> list[pytest.TestReport]:
    return runtestprotocol(item, log=False, nextitem=following)  # type: ignore[arg-type]


def _outcome(reports: Sequence[pytest.TestReport]) -> str:
    outcomes = {report.outcome for report in reports}
    return next((outcome for outcome in ("failed", "skipped") if outcome in outcomes), "passed")


def use_profile(config: pytest.Config, file: Path) -> None:
    """Make every double that starts from now on use the profile. Raise UsageError."""
    try:
        profiles.read(file)
    except ProfileError as error:
        raise pytest.UsageError(f"--platform-profile: {error}") from None
    patch = pytest.MonkeyPatch()
    patch.setenv("AGENTDOUBLE_PROFILE", str(file))  # also for a double in another interpreter
    config.add_cleanup(patch.undo)
