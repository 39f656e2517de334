"""When a runtime's next instance may be started, after starts that failed."""

from __future__ import annotations

_FIRST_S = 0.1
_LONGEST_S = 10.0
_TRIES = 3


class Backoff:
    """Doubles the time before the next try with each failure in a row, on the loop's clock."""

    def __init__(self) -> None:
        self.failures = 0
        self.proven = False  # an instance got ready: starting one is worth another try
        self._until = 0.0

    @property
    def hopeless(self) -> bool:
        """Whether callers need not wait for the next try: it never worked, or not for a while."""
        return not self.proven or self.failures >= _TRIES

    def failed(self, now: float) -> None:
        """Note at ``now`` that a start failed, or that what started ended without any use."""
        self.failures += 1
        self._until = now + min(_LONGEST_S, _FIRST_S * 2.0 ** min(self.failures - 1, 20))

    def started(self) -> None:
        """Note that an instance got ready."""
        self.proven = True

    def served(self) -> None:
        """Note that an instance is of use."""
        self.failures = 0
        self._until = 0.0

    def remaining_s(self, now: float) -> float:
        """Return how long to wait before the next try."""
        return max(0.0, self._until - now)
