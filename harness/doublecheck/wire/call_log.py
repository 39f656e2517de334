"""The platform calls of the current test, which its report shows.

Every client adds its exchanges; the plugin keeps them while a test runs. Every test run of an
environment with the harness imports this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from doublecheck.target.target import Target
    from doublecheck.wire.request_log import Recording

KEPT = 64


CallLog: TypeAlias = "deque[tuple[Target, Recording]]"
_open: list[CallLog] = []  # a test that runs pytest in its own process has several


@contextmanager
def of_test() -> Iterator[None]:
    """Keep the calls of a test while the context lasts."""
    _open.append(deque(maxlen=KEPT))
    try:
        yield
    finally:
        _open.pop()


def current() -> CallLog | None:
    """Return the last calls of the current test, oldest first; None outside of tests."""
    return _open[-1] if _open else None
