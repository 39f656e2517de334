"""Sections of figures, each with what both sides do, and how figures are written."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class Row:
    """A figure. ``wanted`` is the goal, if there is one: at most, or with ``least`` at least."""

    name: str
    value: float
    unit: str = ""
    wanted: float | None = None
    least: bool = False

    @property
    def goal(self) -> str:
        """The goal in words."""
        if self.wanted is None:
            return ""
        return f"at {'least' if self.least else 'most'} {_number(self.wanted)}{_after(self.unit)}"

    def reached(self, value: float) -> str:
        """Return whether a value reaches the goal: yes, no, or nothing without a goal."""
        if self.wanted is None:
            return ""
        return "yes" if (value >= self.wanted if self.least else value <= self.wanted) else "no"

    def __str__(self) -> str:
        return line(self, [self.value])


@dataclass(frozen=True)
class Section:
    """Figures that were measured in the same way. ``about`` says what each side does."""

    title: str
    about: str
    rows: Iterable[Row]


PACKAGES = ("agentdouble", "jupyter_client", "ipykernel", "a2a-sdk", "mcp")
HEAD = "| | measured | wanted | reached |\n|---|---|---|---|"


def line(row: Row, values: list[float]) -> str:
    """Return the line of a table: the median of the values, and the lowest to the highest."""
    ordered = sorted(values)
    median = ordered[len(ordered) // 2]
    if len(ordered) % 2 == 0:
        median = (median + ordered[len(ordered) // 2 - 1]) / 2
    span = f" ({_number(ordered[0])} to {_number(ordered[-1])})" if len(ordered) > 1 else ""
    measured = f"{_number(median)}{span}{_after(row.unit)}"
    return f"| {row.name} | {measured} | {row.goal} | {row.reached(median)} |"


def _after(unit: str) -> str:
    return f" {unit}" if unit else ""


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 20:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 2 else f"{value:.2f}"


def write(sections: Iterable[Section], file: Path | None) -> None:
    """Print sections as Markdown while their figures come, and write them as JSON."""
    head = machine()
    print(", ".join(f"{name} {value}" for name, value in head.items()))
    written = []
    for section in sections:
        print(f"\n## {section.title}\n\n{section.about}\n\n{HEAD}")
        rows = []
        for row in section.rows:
            rows.append(asdict(row))
            print(row, flush=True)
        written.append({"title": section.title, "about": section.about, "rows": rows})
    if file is not None:
        file.write_text(json.dumps({**head, "sections": written}, indent=2), "utf-8")


def machine() -> dict[str, Any]:
    """Return what figures depend on: the date, the machine and the versions."""
    return {
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "load": round(os.getloadavg()[0], 2),
        "cores": psutil.cpu_count(),
        "GiB of memory": round(psutil.virtual_memory().total / 2**30),
        platform.system(): platform.release(),
        "Python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }
