"""Print the table: ``python -m tests.real_targets.agents [NAME...]``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.real_targets.agents import INSTALL, serve
from tests.real_targets.agents.cases import CASES
from tests.real_targets.agents.comparing import KINDS, Compared, compare, unexplained

HEAD = "| agent | about | requests | events | differs |\n|---|---|---|---|---|"
_SHOWN = 6  # of one agent: the others often follow from the first


def main() -> int:
    """Print a row for each agent, then the differences."""
    python = os.environ.get("DOUBLECHECK_ADK_PYTHON")
    if not python:
        sys.exit(f"DOUBLECHECK_ADK_PYTHON names no Python: {INSTALL}")
    cases = [case for case in CASES if case.app in sys.argv[1:] or not sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder, serve(python, Path(folder)) as (real, double):
        compared = [compare(case, real, double) for case in cases]
    rest = [difference for app in compared for difference in unexplained(app)[:_SHOWN]]
    rows = (HEAD, *map(_row, compared))
    reasons = (f"- {kind.reason}" for kind in KINDS)
    print(*rows, "", *reasons, "", *rest, sep="\n")  # noqa: T201
    return 1 if rest else 0


def _row(comparison: Compared) -> str:
    open_count, total = len(unexplained(comparison)), len(comparison.differences)
    summary = f"{open_count} places" if open_count else "as explained below" if total else "nothing"
    return f"| {comparison.case.app} | {comparison.case.about} | {comparison.requests} | {comparison.events} | {summary} |"


if __name__ == "__main__":
    sys.exit(main())
