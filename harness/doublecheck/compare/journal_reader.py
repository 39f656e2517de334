"""A reader of a double's journal that returns each entry once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentdouble.core import ledger
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import DoubleCheckError
from doublecheck.target.target import Target


class JournalReader:
    """A double's journal that yields each entry once."""

    def __init__(self, target: Target) -> None:
        self._platform = Platform(target, timeout_s=10)
        self._last = 0
        self.in_force: Mapping[str, str] = {}

    def relied_on(self) -> frozenset[str]:
        """Return the unsettled unknowns that the entries since the last call relied on.

        The result is empty if the double does not answer, because a test may have stopped it.
        """
        try:
            usage = self._platform._unknowns(after=self._last)
        except DoubleCheckError:
            return frozenset()
        self._last, self.in_force = usage.last, usage.in_force
        return usage.relied_on - usage.settled

    def close(self) -> None:
        self._platform.close()

    @staticmethod
    def refusal(relied_on: Sequence[str]) -> str:
        """Return why a strict run fails a test that relied on unknowns."""
        return (
            f"--platform-strict: this test relies on {', '.join(relied_on)}, which the specification "
            "leaves open and no profile settles. 'doublecheck calibrate' writes a profile of a "
            "deployment. If you know the answer (see 'agentdouble unknowns'), add it to the profile's "
            f'[unknowns]: {relied_on[0]} = "{ledger.find(relied_on[0]).default.name}".'
        )
