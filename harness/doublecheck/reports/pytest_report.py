"""What the plugin adds to pytest's reports: results, captured calls, short tracebacks.

``--platform-report`` writes the results of the contract checks to a file, whose suffix selects the
format, and ``--platform-baseline`` reads a former one, whose failures are known. Both also work
with pytest-xdist's workers. Every test run loads this module, so it imports the modules for a
report only if one is requested.

Tracebacks of failed tests end at the user's line if the error is one of ours: an error with a clear
message needs none of our frames. The report is cut when it is drawn, innermost, and the error
itself does not change: a debugger, ``--tb=long``, ``--tb=native`` and ``--full-trace`` show every
frame. The contract checks, which are our tests, are not cut. pytest's ``__tracebackhide__`` does
not fit: it would be needed in about 75 modules, it leaves the frames of httpx if an error is raised
below it, as with platform_mock, and it also applies to ``--tb=long``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from _pytest._code.code import ExceptionRepr, TerminalRepr  # noqa: TID251 (what longrepr may be)

from doublecheck.wire import call_log

_TITLE = "Captured platform calls"

_WHOLE = ("long", "native")
_ASSERTING = "doublecheck.fixtures"  # its assertions explain themselves


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
    group.addoption(
        "--platform-baseline",
        metavar="FILE",
        type=Path,
        help="a JSON report of an earlier run: its failures are known and do not fail this one",
    )


def configure(config: pytest.Config) -> None:
    """Prepare a report. Raise UsageError, before the run, if it could not be written or read."""
    paths, known = config.getoption("platform_report"), config.getoption("platform_baseline")
    if hasattr(config, "workerinput"):  # xdist's workers report to their controller
        return
    if paths:
        from doublecheck.reports import collector  # slow: 0.1 s

        collector.write_reports(config, paths)
    if known is not None:
        from doublecheck.reports import baseline  # slow: 0.1 s

        baseline.configure(config, known)


def add_section(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add the calls of a failed test to its report. Contract checks show their own."""
    log = call_log.current()
    if not report.failed or not log:
        return
    from doublecheck.reports.captured_calls import section  # slow: 0.4 s

    text = section(item, log)
    if text:
        report.sections.append((_TITLE, text))


def cut(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Shorten the report of a user's test to the user's lines and the error."""
    if call.excinfo is None or not isinstance(report.longrepr, ExceptionRepr):
        return
    if (
        _has_own_message(call.excinfo.value)
        and _is_users(item)
        and not (
            item.config.getoption("fulltrace", False)
            or item.config.getoption("tbstyle", "auto") in _WHOLE
        )
    ):
        report.longrepr = _shown(item, call.excinfo)


def _has_own_message(error: BaseException) -> bool:
    """Return whether the message of an error is enough, without a traceback."""
    tracebacks = _tracebacks()
    if tracebacks is None:  # none of our modules that could have raised one has run
        return False
    if isinstance(error, AssertionError):
        return _raised_by(error.__traceback__).startswith(_ASSERTING)
    return isinstance(error, tracebacks.ShownShort)


def _raised_by(frames: TracebackType | None) -> str:
    """Return the name of the module of the innermost frame."""
    name = ""
    while frames is not None:
        name, frames = str(frames.tb_frame.f_globals.get("__name__")), frames.tb_next
    return name


def _is_users(item: pytest.Item) -> bool:
    """Whether a test is the user's own; reports of contract checks are not shortened."""
    return bool(_tracebacks().origin_of(str(item.path)) == "user")


def _shown(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> str | TerminalRepr:
    """Return the user's lines and the error, or only the error if one of our fixtures raised it."""
    tracebacks, error = _tracebacks(), excinfo.value
    frames = tracebacks.own_frames(error.__traceback__)
    if frames is None:
        return excinfo.exconly()
    alone = tracebacks.alone(error)
    return item.repr_failure(pytest.ExceptionInfo.from_exc_info((type(alone), alone, frames)))


def _tracebacks() -> Any:
    """Return the module that finds the origin of a frame, if it is imported."""
    return sys.modules.get("agentdouble.errors.tracebacks")
