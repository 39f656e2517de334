"""The result of one probe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentdouble.core import ledger
from agentdouble.core.ledger import Alternative
from doublecheck.calibration import api_server, control_plane, invocation, sessions  # noqa: F401 (each registers its probes)
from doublecheck.calibration.probe import PROBES as PROBES


@dataclass(frozen=True, repr=False)
class Finding:
    """The result of a probe: the name of an answer, or "" and the reason why there is none."""

    unknown: str
    answer: str = ""
    reason: str = ""
    date: str = ""
    exchanges: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Finding {self.unknown}: {self.answer or f'not settled, {self.reason}'}>"

    @property
    def settled(self) -> bool:
        """Whether there is an answer."""
        return bool(self.answer)

    @property
    def lived(self) -> bool:
        """Whether the double can behave as this answer says."""
        return any(answer.built for answer in self._answers())

    @property
    def meaning(self) -> str:
        """The meaning of the answer, in the words of the ledger."""
        return next((answer.meaning for answer in self._answers()), "")

    def _answers(self) -> Iterator[Alternative]:
        """Yield the answer in the ledger, if it has one of this name."""
        unknown = ledger.find(self.unknown)
        answers = (unknown.default, *unknown.alternatives)
        yield from (answer for answer in answers if answer.name == self.answer)
