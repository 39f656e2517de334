"""Tracebacks of failed tests end at the user's line, where the error is one of ours.

pytest shows every frame with its source. An error that explains itself needs none of ours. The
report is cut where it is drawn, innermost, and the error stays as it was: a debugger, ``--tb=long``,
``--tb=native`` and ``--full-trace`` have every frame. Tests of ours, the contract checks, are not
cut.

pytest's ``__tracebackhide__`` was tried: it would stand in some 75 modules, leaves the frames of
httpx where an error is raised below it, as with platform_mock, and holds for ``--tb=long``, too.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import pytest
from _pytest._code.code import ExceptionRepr, TerminalRepr

_WHOLE = ("long", "native")
_ASSERTING = "doublecheck.fixtures"  # whose assertions explain themselves


def cut(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Shorten the report of a user's test to the user's lines and the error."""
    if call.excinfo is None or not isinstance(report.longrepr, ExceptionRepr):
        return
    if _is_ours(call.excinfo.value) and _is_users(item) and not _all_is_wanted(item.config):
        report.longrepr = _shown(item, call.excinfo)


def _is_ours(error: BaseException) -> bool:
    """Whether an error is one of ours, whose message is enough."""
    tracebacks = _tracebacks()
    if tracebacks is None:  # nothing of ours has run that could have raised one
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
    return bool(_tracebacks().whose(str(item.path)) == "user")


def _all_is_wanted(config: pytest.Config) -> bool:
    return config.getoption("fulltrace", False) or config.getoption("tbstyle", "auto") in _WHOLE


def _shown(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> str | TerminalRepr:
    """Return the user's lines and the error; the error alone if one of our fixtures raised it."""
    tracebacks, error = _tracebacks(), excinfo.value
    frames = tracebacks.own_frames(error.__traceback__)
    if frames is None:
        return excinfo.exconly()
    alone = tracebacks.alone(error)
    return item.repr_failure(pytest.ExceptionInfo.from_exc_info((type(alone), alone, frames)))


def _tracebacks() -> Any:
    """Return the module that tells the origin of a frame, if it is imported."""
    return sys.modules.get("agentdouble.tracebacks")
