"""The isolation of sessions on this machine, measure by measure."""

from __future__ import annotations

from agentdouble.cli.doctor.findings import Finding, lacking
from agentdouble.processes import isolation


def find() -> list[Finding]:
    """Try every measure in a separate process."""
    try:
        found = isolation.find_out()
    except OSError as error:  # the machine has too little of some resource now
        why_not = f"nobody could try it: {error}"
        return [lacking("isolation", "isolation", why_not, "Ask again when there is room.")]
    return [_told(measure) for measure in found.measures.values()]


def _told(measure: isolation.Measure) -> Finding:
    identity = f"isolation.{measure.name}"
    if measure.available:
        return Finding(identity, measure.name, measure.gives)
    return lacking(identity, measure.name, measure.why_not, measure.remedy or "")
