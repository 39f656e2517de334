"""How far sessions are held apart here, measure by measure."""

from __future__ import annotations

from agentdouble.cli.doctor.findings import Finding, lacking
from agentdouble.processes import isolation


def find() -> list[Finding]:
    """Try every measure in a process of its own."""
    return [_told(measure) for measure in isolation.find_out().measures.values()]


def _told(measure: isolation.Measure) -> Finding:
    identity = f"isolation.{measure.name}"
    if measure.available:
        return Finding(identity, measure.name, measure.gives)
    return lacking(identity, measure.name, measure.why_not, measure.remedy or "")
