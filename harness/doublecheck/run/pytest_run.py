"""Run the contract checks with pytest, isolated from the environment, and collect the results."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from doublecheck import contracts
from doublecheck.contracts.run_result import Check, Run
from doublecheck.reports.collector import Collector

__all__ = [
    "Check",
    "Run",
    "run",
]

_FOLDER = Path(contracts.__file__).parent
_UNWANTED = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


def run(
    arguments: Sequence[str],
    *,
    verbose: bool,
    modules: Sequence[str] = (),
    plugins: Sequence[object] = (),
) -> Run:
    """Run the checks with additional pytest options. pytest's own output goes to stderr.

    ``modules`` are the modules with the checks to run, by default all, because collecting takes
    time. ``plugins`` are pytest plugins that follow the progress.

    The working directory has no influence: no ini file, conftest, addopts or plugins except ours
    are used.
    """
    collector = Collector()
    options = [
        *(str(_FOLDER / f"{module}.py") for module in modules),
        *([] if modules else [str(_FOLDER)]),
        f"--config-file={_FOLDER / 'contracts.ini'}",
        f"--rootdir={_FOLDER}",
        f"--confcutdir={_FOLDER}",
        *("-p", "no:cacheprovider", "-p", "doublecheck.plugin"),
        *("--no-header", "--tb=short", "-rN", "-v" if verbose else "-qq"),
    ]
    with _clean_room(), contextlib.redirect_stdout(sys.stderr):
        ended = pytest.main([*options, *arguments], plugins=[collector, *plugins])
    return collector.run(int(ended))


@contextlib.contextmanager
def _clean_room() -> Iterator[None]:
    environment = dict(os.environ)
    for name in _UNWANTED:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
