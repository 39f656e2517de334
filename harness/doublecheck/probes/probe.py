"""A probe: it finds out a platform's answer to an unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doublecheck.target.surfaces import Surface

if TYPE_CHECKING:
    from doublecheck.probes.probing import Probing
    from doublecheck.target.target import Target

Look = Callable[["Probing"], str]

_registered: dict[str, Probe] = {}


class NotSettledError(Exception):
    """The answer does not show which alternative the platform implements; the message says why."""


@dataclass(frozen=True)
class Probe:
    """A probe that finds a platform's answer to an unknown; ``look`` returns its name.

    ``writes`` says that it creates something on the platform, which is removed again. ``slow_s`` is
    the time that passes, by the clock of a double. ``reference`` says that the platform must run
    the reference application.
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
            return "runs or makes something on the platform, which it removes: --allow-writes"
        if self.slow_s and not slow:
            return f"lets {self.slow_s} s pass: --slow"
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
        assert unknown not in _registered, f"{unknown} has a probe already"
        _registered[unknown] = Probe(unknown, surfaces, look, writes, slow_s, reference)
        return look

    return register


def registered() -> Mapping[str, Probe]:
    """Return every probe whose module is imported, by the id of its unknown."""
    return _registered
