"""What a failed test called: a section of its report, and a line below its comparison.

Every test run loads this module, so it imports what shows calls only if a test fails that made any:
names and no module, because pytester drops modules from ``sys.modules``, but not from their package.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from doublecheck import call_log

_TITLE = "Captured platform calls"


def of_test() -> AbstractContextManager[None]:
    """Keep the calls of a test while the context lasts."""
    return call_log.of_test()


def add_section(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add the calls of a failed test to its report; contract checks show their own."""
    log = call_log.current()
    if not report.failed or log is None or not log.calls or not _is_users(item):
        return
    from doublecheck.reports.captured_calls import section

    text = section(log)
    if text:
        report.sections.append((_TITLE, text))


def explained(explanations: list[list[str]], op: str, left: Any, right: Any) -> list[list[str]]:
    """Add the failure behind a result to the explanations of a failed comparison."""
    log = call_log.current()
    if log is None or not log.calls:
        return explanations
    from doublecheck.reports.captured_calls import explain

    lines = explain(log, left, right)
    if not lines:
        return explanations
    given: Sequence[str] = next(filter(None, explanations), ())
    return [[*(given or (_summary(op, left, right),)), "", *lines]]


def _summary(op: str, left: Any, right: Any) -> str:
    from reprlib import repr as shortened

    return f"{shortened(left)} {op} {shortened(right)}"


def _is_users(item: pytest.Item) -> bool:
    from agentdouble.code_origin import whose

    return whose(str(item.path)) == "user"
