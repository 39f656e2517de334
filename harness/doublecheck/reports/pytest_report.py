"""``--platform-report``: write the results of a pytest run's contract checks to a file.

The file's suffix selects the format. It also works with pytest-xdist's workers. Every test run
loads this module, so it imports the modules for a report only if one is requested.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from doublecheck.wire import call_log


def add_option(group: pytest.OptionGroup) -> None:
    """Add the option."""
    group.addoption(
        "--platform-report",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="write the results of the contract checks: .html or .json; repeatable",
    )


def configure(config: pytest.Config) -> None:
    """Prepare a report. Raise UsageError, before the run, if it could not be written."""
    paths = config.getoption("platform_report")
    if not paths or hasattr(config, "workerinput"):  # xdist's workers report to their controller
        return
    from doublecheck.reports import collector  # slow: 0.1 s

    collector.write_reports(config, paths)


_TITLE = "Captured platform calls"


def of_test() -> AbstractContextManager[None]:
    """Keep the calls of a test while the context lasts."""
    return call_log.of_test()


def add_section(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add the calls of a failed test to its report. Contract checks show their own."""
    log = call_log.current()
    if not report.failed or log is None or not log.calls:
        return
    from doublecheck.reports.captured_calls import section  # slow: 0.4 s

    text = section(item, log)
    if text:
        report.sections.append((_TITLE, text))
