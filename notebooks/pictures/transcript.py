"""``agentdouble demo``, run for real, and the parts of it that a picture shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PICTURE = Path(__file__).parent / "demo.svg"
COLUMNS = 84
SHOWN = (
    "agentdouble demo",
    "State is kept between turns",
    "A plot comes back as an image",
    "After 30 minutes a session is destroyed",
    "All ",
)
LEFT_OUT = "  ⋮"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DIFFERING = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=in )[\d.]+(?= s\.)|\d+(?= x \d+ pixels)|"
                        r"(?<= x )\d+(?= pixels)|\d+(?= KiB)")  # fmt: skip


def run(*, coloured: bool = False) -> str:
    """Run the demo in a terminal of that width and return what it prints."""
    colours = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TTY_INTERACTIVE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "agentdouble", "demo"],
        env={**os.environ, "COLUMNS": str(COLUMNS), **(colours if coloured else {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


def excerpt(printed: str) -> str:
    """Return the parts that are shown, with a mark where something is left out."""
    return "\n\n".join(_parts(printed.strip()))


def _parts(printed: str) -> Iterator[str]:
    left_out = False
    for part in re.split(r"\n\n(?=\S)", printed):  # code and tracebacks are indented
        if plain(part).startswith(SHOWN):
            yield part
        elif not left_out:
            yield LEFT_OUT
        left_out = not plain(part).startswith(SHOWN)


def plain(printed: str) -> str:
    """Return a text without its colours."""
    return _COLOUR.sub("", printed)


def normalize(printed: str) -> str:
    """Return a text without what differs from run to run: ports, times, the size of the plot."""
    lines = (line.rstrip() for line in _DIFFERING.sub("#", printed).splitlines())
    return "\n".join(lines)
