"""The platform calls of the current test, which its report shows.

Every client adds its exchanges; the plugin keeps them for the time of a test. Every test run of an
environment with the harness imports this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doublecheck.target.target import Target
    from doublecheck.wire.request_log import Recording

KEPT = 64


class CallLog:
    """The last calls of a test, oldest first, each with its target."""

    def __init__(self) -> None:
        self.calls: deque[tuple[Target, Recording]] = deque(maxlen=KEPT)

    def add(self, target: Target, recording: Recording) -> None:
        """Add a call."""
        self.calls.append((target, recording))


_open: list[CallLog] = []  # a test that runs pytest in its own process has several


@contextmanager
def of_test() -> Iterator[None]:
    """Keep the calls of a test while the context lasts."""
    _open.append(CallLog())
    try:
        yield
    finally:
        _open.pop()


def current() -> CallLog | None:
    """Return the calls of the current test, None outside of tests."""
    return _open[-1] if _open else None
