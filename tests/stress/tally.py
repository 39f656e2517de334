"""The tally of a stress test: attempts, failures and losses."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TALLY = "tally"  # the property of a test's report that has its line
_SHOWN = 5


@dataclass
class Stress:
    """The scale of one stress test and its tally.

    ``random`` is seeded: the same seed asks the same in the same order.
    """

    name: str
    seed: int
    long: bool
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.name} {self.seed}")

    def scale(self, short: int, long: int) -> int:
        """Return how many of something this run uses."""
        return long if self.long else short

    def failed(self, check: str) -> None:
        """Count a wrong or missing answer."""
        self.failures.append(check)

    def lost(self, name: str) -> None:
        """Count something acknowledged that is missing, or something refused that exists."""
        self.losses.append(name)

    def line(self) -> str:
        """Return the tally in one line."""
        counts = f"tried {self.tried}, failed {len(self.failures)}, lost {len(self.losses)}"
        figures = "".join(f", {name} {value}" for name, value in self.figures.items())
        return f"{self.name}: {counts}{figures} (seed {self.seed})"

    def check(self) -> None:
        """Fail if anything failed or was lost, or if nothing was tried."""
        wrong = [*self.failures, *self.losses]
        assert not wrong, "\n".join([self.line(), *wrong[:_SHOWN]])
        assert self.tried, f"{self.line()}: nothing was tried"
