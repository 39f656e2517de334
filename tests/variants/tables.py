"""The legal variants of each surface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from doublecheck.target.facts import Surface
from tests.mutants.wire import Change
from tests.variants import agents, protocols, sandbox


@dataclass(frozen=True)
class Variant:
    """A platform that answers in another form."""

    surface: Surface
    name: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return f"{self.surface}-{self.name}"


TABLE: dict[Surface, dict[str, Any]] = {
    "application": agents.APPLICATION,
    "api_server": agents.API_SERVER,
    "control_plane": sandbox.CONTROL_PLANE,
    "sandbox": sandbox.SANDBOX,
    "mcp": protocols.MCP_SERVERS,
    "services": protocols.SERVICES,
    "a2a": protocols.A2A_VARIANTS,
    "library": {"results_in_other_forms": list(sandbox.OUTPUTS.values())},
}
VARIANTS = tuple(
    Variant(surface, name, (change,) if isinstance(change, Change) else tuple(change))
    for surface, variants in TABLE.items()
    for name, change in variants.items()
)
