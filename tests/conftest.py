from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path

# A pytester run forgets what it has imported. These would not work if they were imported in one
# and once more after it: httpx knows its errors by the classes of httpcore, and two copies of
# protobuf's messages end the process.
import a2a.types  # noqa: F401
import httpcore  # noqa: F401
import pytest
from _pytest import pytester  # noqa: TID251 (to replace a class of it)
from harness import unasync

from agentdouble.processes import isolation
from tests import machine
from tests.stress.tally import TALLY

unasync.generate()

pytest_plugins = ["pytester"]


class ModulesSnapshot:
    """What is imported, kept over a pytester run, which forgets what it has imported.

    pytester's own empties ``sys.modules`` and fills it again. A thread that imports something
    at that moment, a double's say, makes it anew, and breaks it for the whole process.
    """

    def __init__(self, preserve: Callable[[str], bool] = lambda _name: False) -> None:
        self._saved = dict(sys.modules)
        self._preserve = preserve

    def restore(self) -> None:
        """Remove new modules, and restore replaced ones."""
        for name in set(sys.modules) - set(self._saved):
            if not self._preserve(name):
                sys.modules.pop(name, None)
        changed = [name for name in self._saved if not self._preserve(name)]
        sys.modules.update({name: self._saved[name] for name in changed})


pytester.SysModulesSnapshot = ModulesSnapshot  # type: ignore[misc, assignment]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the scale and the seed of ``tests/stress``."""
    group = parser.getgroup("stress tests of agentdouble")
    group.addoption("--stress", choices=["short", "long"], default="short")
    group.addoption("--stress-seed", type=int, default=1, metavar="N")


def pytest_configure(config: pytest.Config) -> None:
    """Skip slow tests unless a path or a marker is given."""
    if not config.option.markexpr and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.option.markexpr = "not slow"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Use one process for named tests and files, and for everything with ``-s``.

    Workers start slowly, and show no output or prompts of a test.
    """
    folders = any(Path(argument).is_dir() for argument in config.args)
    if folders and config.option.capture != "no":
        return None  # as many as xdist finds best
    config.option.dist = "no"
    return 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look for what a test needs before its fixtures do."""
    for marker in item.iter_markers("needs"):
        machine.require(*marker.args)


@pytest.fixture(scope="session")
def tmp_path_factory(tmp_path_factory: pytest.TempPathFactory) -> pytest.TempPathFactory:
    """pytest's own; where root's sessions have no view of files, all users can read them."""
    if os.geteuid() != 0 or isolation.find_out().offers("files"):
        return tmp_path_factory
    factory = copy.copy(tmp_path_factory)
    factory.mktemp = lambda *a, **k: machine.open_to_others(tmp_path_factory.mktemp(*a, **k))  # type: ignore[method-assign]
    return factory


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio alone, because trio is not installed."""
    return "asyncio"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each stress test of any worker."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    tallies = [
        str(value)
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == TALLY and report.when == "call"
    ]
    if tallies:
        terminalreporter.section("stress")
    for tally in tallies:
        terminalreporter.line(tally)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Set a loop that pytest-asyncio can restore; otherwise it makes one and never closes it."""
    if item.get_closest_marker("asyncio") is None:
        return (yield)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return (yield)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
