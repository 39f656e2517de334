"""The table of harness/docs/implementations.md: what the checks find in the double and in real implementations.

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
from tests.real_targets.platforms import IMPLEMENTATIONS, Implementation, Report, gaps
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
        if any(cell != "not offered" for cell in cells):
            yield f"| {name} ({group}) | {' | '.join(cells)} |"


def verdicts(report: Report, group: str) -> Sequence[str]:
    """Return the verdicts on the clauses of a group."""
    return [value for id_, value in report.verdicts.items() if id_.startswith(group)]


def cell(verdicts: Sequence[str]) -> str:
    """Return the counts of the verdicts, without clauses that the target need not fulfil."""
    counts = Counter(verdicts)
    counted = [f"{counts[verdict]} {verdict}" for verdict in SHOWN if counts[verdict]]
    return ", ".join(counted) or "not offered"


def column(impl: Implementation, python: str) -> tuple[str, Report]:
    """Return the heading and the report of an implementation."""
    with tempfile.TemporaryDirectory() as folder, impl.serve(python, Path(folder)) as addresses:
        report = platforms.check(addresses)
    return f"{impl.package} {version(python, impl.package)}", report


def main() -> None:
    """Print the table, followed by the deviations of the implementations."""
    missing = [impl for impl in IMPLEMENTATIONS if impl.variable not in os.environ]
    if missing:
        lines = [f"{impl.variable}: a Python with pip install '{impl.install}'" for impl in missing]
        raise SystemExit("\n".join(lines))
    columns = dict(column(impl, os.environ[impl.variable]) for impl in IMPLEMENTATIONS)
    print(*table({"the double": platforms.check_double(), **columns}), "", sep="\n")  # noqa: T201
    for impl in IMPLEMENTATIONS:
        for clause, reason in gaps(impl.package).items():
            print(f"- **{clause}**, {impl.package}: {reason}")  # noqa: T201


if __name__ == "__main__":
    main()
