"""Faults that happen while code runs or a session starts: passed from the request to there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class InjectedFault:
    """A fault that happens once: to running code, after ``after`` messages, or to a start.

    ``happened`` counts that it has happened.
    """

    def __init__(self, happened: Callable[[], None], kind: str, after: int) -> None:
        self.kind = kind
        self.after = after
        self.happened = happened
        self._done = False

    def take(self) -> bool:
        """Return whether the fault has not been taken yet, and mark it as taken."""
        is_first, self._done = not self._done, True
        return is_first


_current: ContextVar[InjectedFault | None] = ContextVar("agentdouble_injected_fault", default=None)


def injected_fault() -> InjectedFault | None:
    """Return the fault for what is about to run or start; only the first caller gets it."""
    fault = _current.get()
    return fault if fault is not None and fault.take() else None


@contextmanager
def injecting(fault: InjectedFault) -> Iterator[None]:
    """Make a fault happen to the first code that runs, or session that starts, inside."""
    token = _current.set(fault)
    try:
        yield
    finally:
        _current.reset(token)
