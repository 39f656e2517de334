"""``--platform-report``: a report of the contract checks of a pytest run, by the file's suffix.

Every test run loads this: what makes a report is imported when somebody asks for one.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def add(group: pytest.OptionGroup) -> None:
    """Add the option."""
    group.addoption(
        "--platform-report",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="write what the contract checks came to: .html, .json or .xml (JUnit); repeatable",
    )


def configure(config: pytest.Config) -> None:
    """Let a report be made; raise UsageError, before the run, if it could not be written."""
    paths = config.getoption("platform_report")
    if not paths or hasattr(config, "workerinput"):  # xdist's workers report to their controller
        return
    from doublecheck.errors import ReportError
    from doublecheck.reports import formats
    from doublecheck.reports import write as writing
    from doublecheck.reports.pytest_report import Reporting

    try:
        for path in paths:
            formats.require_format(path)
            writing.require_writable(path)
    except ReportError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(Reporting(config, paths), "doublecheck-reporting")
