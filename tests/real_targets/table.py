"""The table of harness/README.md: what the checks find in the double and in real implementations.

``python -m tests.real_targets.table`` prints it; the variables of ``platforms`` say where the
implementations are installed.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.real_targets import platforms
from tests.real_targets.deviations import known
from tests.real_targets.platforms import IMPLEMENTATIONS, Implementation, Report
from tests.real_targets.processes import version

GROUPS = {
    "INV": "`/invoke`",
    "PRB": "probes",
    "API": "API server",
    "MCP": "tools",
    "A2A": "agents",
    "CTL": "control plane",
    "SBX": "sandbox",
    "SVC": "services",
    "AUT": "access",
    "HST": "hosting",
    "DEC": "decorators",
    "RUN": "`run_code`",
}
SHOWN = ("passed", "failed", "error", "could not ask", "observed", "not run", "not observable")


def table(reports: Mapping[str, Report]) -> Iterator[str]:
    """Yield the lines of the table, a column for each report."""
    yield f"| clauses | {' | '.join(reports)} |"
    yield "|---" * (len(reports) + 1) + "|"
    for group, name in GROUPS.items():
        cells = [cell(verdicts(report, group)) for report in reports.values()]
        if any(one != "not offered" for one in cells):
            yield f"| {name} ({group}) | {' | '.join(cells)} |"


def verdicts(report: Report, group: str) -> Sequence[str]:
    """Return the verdicts on the clauses of a group."""
    return [one for id_, one in report.verdicts.items() if id_.startswith(group)]


def cell(found: Sequence[str]) -> str:
    """Return how many came to what; what nobody could expect of the target is not counted."""
    counts = Counter(found)
    told = [f"{counts[one]} {one}" for one in SHOWN if counts[one]]
    return ", ".join(told) or "not offered"


def column(one: Implementation, python: str) -> tuple[str, Report]:
    """Return the heading and the report of an implementation."""
    with tempfile.TemporaryDirectory() as folder, one.serve(python, Path(folder)) as addresses:
        report = platforms.check(addresses)
    return f"{one.package} {version(python, one.package)}", report


def main() -> None:
    """Print the table, and below it what the implementations do otherwise."""
    missing = [one for one in IMPLEMENTATIONS if one.variable not in os.environ]
    if missing:
        told = [f"{one.variable}: a Python with pip install '{one.install}'" for one in missing]
        raise SystemExit("\n".join(told))
    found = dict(column(one, os.environ[one.variable]) for one in IMPLEMENTATIONS)
    print(*table({"the double": platforms.check_double(), **found}), "", sep="\n")  # noqa: T201
    for one in IMPLEMENTATIONS:
        for clause, seen in known(one.package).items():
            print(f"- **{clause}**, {one.package}: {seen}")  # noqa: T201


if __name__ == "__main__":
    main()
