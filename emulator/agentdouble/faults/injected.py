"""What is to happen to the code that the request at hand runs: the sandbox asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agentdouble.faults.plan import Armed


class InjectedFault:
    """Something that happens to code while it runs, once; ``kind`` says what.

    It is to happen ``after`` so many messages of output.
    """

    def __init__(self, armed: Armed, kind: str, after: int) -> None:
        self.kind = kind
        self.after = after
        self._armed = armed
        self._done = False

    def take(self) -> bool:
        """Whether it is still to happen; it is not any more after that."""
        taken, self._done = not self._done, True
        return taken

    def happened(self) -> None:
        """Tell the plan that it has happened."""
        self._armed.happened()


_at_hand: ContextVar[InjectedFault | None] = ContextVar("agentdouble_injected_fault", default=None)


def injected_fault() -> InjectedFault | None:
    """Return what is to happen to the code that is about to run, once; None for nothing."""
    found = _at_hand.get()
    return found if found is not None and found.take() else None


@contextmanager
def at_hand(found: InjectedFault) -> Iterator[None]:
    """Have a fault happen to the first code that runs inside."""
    token = _at_hand.set(found)
    try:
        yield
    finally:
        _at_hand.reset(token)
