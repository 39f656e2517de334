"""Print the table: ``python -m tests.real_targets.agents [NAME...]``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.real_targets.agents import INSTALL, both
from tests.real_targets.agents.cases import CASES
from tests.real_targets.agents.comparing import KINDS, Compared, compare, unexplained

HEAD = "| agent | about | requests | events | differs |\n|---|---|---|---|---|"
_SHOWN = 6  # of one agent: the others often follow from the first


def main() -> int:
    """Print a row for each agent, then what differs."""
    python = os.environ.get("DOUBLECHECK_ADK_PYTHON")
    if not python:
        sys.exit(f"DOUBLECHECK_ADK_PYTHON names no Python: {INSTALL}")
    cases = [one for one in CASES if one.app in sys.argv[1:] or not sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder, both(python, Path(folder)) as (real, double):
        compared = [compare(case, real, double) for case in cases]
    left = [difference for one in compared for difference in unexplained(one)[:_SHOWN]]
    rows = (HEAD, *map(_row, compared))
    reasons = (f"- {kind.reason}" for kind in KINDS)
    print(*rows, "", *reasons, "", *left, sep="\n")  # noqa: T201
    return 1 if left else 0


def _row(one: Compared) -> str:
    left, known = len(unexplained(one)), len(one.differences)
    told = f"{left} places" if left else "as explained below" if known else "nothing"
    return f"| {one.case.app} | {one.case.about} | {one.requests} | {one.events} | {told} |"


if __name__ == "__main__":
    sys.exit(main())
