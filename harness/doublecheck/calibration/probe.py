"""A probe of an unknown, and the register of all probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doublecheck.target.facts import Surface

if TYPE_CHECKING:
    from doublecheck.target.target import Target
from doublecheck.calibration.probing import Probing

Look = Callable[["Probing"], str]

PROBES: dict[str, Probe] = {}  # of all imported modules, by the ids of their unknowns


@dataclass(frozen=True)
class Probe:
    """A probe that finds a platform's answer to an unknown. ``look`` returns the answer's name.

    ``writes``: it creates something on the platform, which is removed again. ``slow_s`` is the time
    that it needs, by the clock of a double. ``reference``: the platform must run the reference
    application.
    """

    unknown: str
    surfaces: tuple[Surface, ...]
    look: Look
    writes: bool = False
    slow_s: int = 0
    reference: bool = False

    def why_not(self, target: Target, *, slow: bool) -> str | None:
        """Return why the probe does not run on a target, or None."""
        absent = [surface for surface in self.surfaces if not target.offers(surface)]
        if absent:
            return f"the target does not offer {', '.join(absent)}"
        if self.reference and not target.reference_app:
            return "needs the reference application (doublecheck contracts app, --reference-app)"
        if self.writes and target.kind == "live" and not target.allow_writes:
            return "creates something on the platform, and removes it; needs --allow-writes"
        if self.slow_s and not slow:
            return f"needs {self.slow_s} s to pass, and --slow"
        return None


def probe(
    unknown: str,
    *surfaces: Surface,
    writes: bool = False,
    slow_s: int = 0,
    reference: bool = False,
) -> Callable[[Look], Look]:
    """Register a function as the probe of an unknown."""

    def register(look: Look) -> Look:
        assert unknown not in PROBES, f"{unknown} already has a probe"
        PROBES[unknown] = Probe(unknown, surfaces, look, writes, slow_s, reference)
        return look

    return register
