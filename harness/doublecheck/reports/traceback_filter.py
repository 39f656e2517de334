"""Cut the tracebacks of failed tests at the user's line if the error is one of ours.

pytest shows every frame with its source, but an error with a clear message needs none of our
frames. The report is cut when it is drawn, innermost, and the error itself does not change: a
debugger, ``--tb=long``, ``--tb=native`` and ``--full-trace`` show every frame. The contract checks,
which are our tests, are not cut.

pytest's ``__tracebackhide__`` does not fit: it would be needed in about 75 modules, it leaves the
frames of httpx if an error is raised below it, as with platform_mock, and it also applies to
``--tb=long``.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import pytest
from _pytest._code.code import ExceptionRepr, TerminalRepr

_WHOLE = ("long", "native")
_ASSERTING = "doublecheck.fixtures"  # its assertions explain themselves


def cut(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Shorten the report of a user's test to the user's lines and the error."""
    if call.excinfo is None or not isinstance(report.longrepr, ExceptionRepr):
        return
    if _is_ours(call.excinfo.value) and _is_users(item) and not _all_is_wanted(item.config):
        report.longrepr = _shown(item, call.excinfo)


def _is_ours(error: BaseException) -> bool:
    """Whether an error is one of ours, whose message is enough."""
    tracebacks = _tracebacks()
    if tracebacks is None:  # none of our modules has run that could have raised one
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


def _all_is_wanted(config: pytest.Config) -> bool:
    return config.getoption("fulltrace", False) or config.getoption("tbstyle", "auto") in _WHOLE


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
