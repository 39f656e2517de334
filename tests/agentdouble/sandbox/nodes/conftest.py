"""A limit for each test: a cluster, or a front that waits for one, may stand still."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

LIMIT_S = 1200


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"the test stood still: it took more than {LIMIT_S} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Interrupt a test, with the fixtures that it starts, where it waits."""
    if threading.current_thread() is not threading.main_thread():
        return (yield)
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(LIMIT_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
