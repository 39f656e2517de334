"""Lines of the table of figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of the table. ``wanted`` is the goal, if there is one."""

    name: str
    measured: str
    wanted: str = ""

    def __str__(self) -> str:
        return f"| {self.name} | {self.measured} | {self.wanted} |"
