"""Report: a run of the checks, and which platform it was about."""

from __future__ import annotations

from dataclasses import dataclass

from doublecheck.runs import Run
from doublecheck.target import Kind


@dataclass(frozen=True)
class Report:
    """What is told of one platform; ``url`` is None for a double that the run itself started."""

    name: str
    kind: Kind
    url: str | None
    run: Run

    @property
    def told_by(self) -> str:
        """The platform in words."""
        name = "" if self.name == self.kind else f"{self.name}, "
        return name + (f"{self.kind} at {self.url}" if self.url else "a double of its own")

    @property
    def cut_short(self) -> str | None:
        """What a reader must know of a run that was interrupted, or None."""
        if not self.run.interrupted:
            return None
        return (
            f"Interrupted: {len(self.run.checks)} of {self.run.chosen} checks were carried out. "
            "Nothing is known about the others."
        )
