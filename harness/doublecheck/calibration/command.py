"""``doublecheck calibrate``: its requirements, its probes, its output and its exit code."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import table as rich_table
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agentdouble.core import ledger, terminal
from doublecheck.calibration import findings
from doublecheck.calibration.finding import Finding
from doublecheck.client import key_checks, transport
from doublecheck.client._sync.platform import Platform
from doublecheck.client.open_target import opened
from doublecheck.core.markup import Markup, coloured, pre
from doublecheck.core.notebook_repr import visible
from doublecheck.errors import TargetError
from doublecheck.target.plan import Sources, plan

SETTLED, NOTHING_SETTLED = 0, 3
_COLUMNS = 120  # in a notebook


def calibrate(
    options: Mapping[str, Any], output: Path, *, only: Sequence[str], slow: bool, as_json: bool
) -> int:
    """Calibrate a platform, write its profile, print the findings, and return the exit code.

    ``options`` give the address of the platform, by key. Raises TargetError, UnreachableError,
    AbsentSurfaceError if it is no platform, CalibrationError and MissingExtraError.
    """
    from doublecheck.calibration import profile_file  # optional: tomlkit

    findings.ids_of(only)
    profile_file.check(output)
    planned = plan(Sources.of(options))
    if "url" not in planned.facts:
        raise TargetError("Give the address of the deployment to calibrate with --url.")
    target, results = opened(planned, "--target"), []
    key_checks.require(target, planned)
    with Platform(target, longest_answer_s=transport.LONGEST_ANSWER_S) as platform:
        for finding in findings.calibrate(platform, slow=slow, only=only):
            _progress(finding)
            results.append(finding)
    settled = any(finding.settled for finding in results)
    if settled:
        profile_file.write(output, target.url, results)
    if as_json:
        print(json.dumps(_document(target.url, results), indent=2))  # noqa: T201
    else:
        console = terminal.console()
        show(results, console)
        console.print(Text(_sum(results, output)), soft_wrap=True)
    return SETTLED if settled else NOTHING_SETTLED


def _document(target: str, results: Sequence[Finding]) -> dict[str, Any]:
    return {"target": target, "findings": [asdict(it) | {"settled": it.settled} for it in results]}


def render(results: Sequence[Finding]) -> Markup:
    """Return the findings as a notebook shows them."""
    console = Console(file=io.StringIO(), force_terminal=True, force_jupyter=False, width=_COLUMNS)
    show(results, console)
    return pre(coloured(console.file.getvalue()))  # type: ignore[attr-defined]


def show(results: Sequence[Finding], console: Console) -> None:
    """Print the settled unknowns as a table, and group the others by reason."""
    console.print()
    settled = [finding for finding in results if finding.settled]
    if settled:
        console.print(_printed_table(settled))
        console.print()
    for reason, unknowns in _unsettled(results).items():
        console.print(Text(f"not settled: {visible(reason)}", "yellow"), soft_wrap=True)
        console.print(Padding(Text(", ".join(unknowns), "dim"), (0, 0, 1, 2)))


def _printed_table(settled: Sequence[Finding]) -> rich_table.Table:
    table = rich_table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("unknown", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    table.add_column("")
    for finding in settled:
        table.add_row(finding.unknown, *_table_row(finding))
    return table


def _unsettled(results: Sequence[Finding]) -> Mapping[str, Sequence[str]]:
    """Group the unknowns without an answer by their reason."""
    by_reason: dict[str, list[str]] = {}
    for finding in results:
        if not finding.settled:
            by_reason.setdefault(finding.reason, []).append(finding.unknown)
    return by_reason


def _table_row(finding: Finding) -> tuple[Text, Text]:
    default = ledger.find(finding.unknown).default.name == finding.answer
    meaning = finding.meaning + ("" if finding.lived else " (not supported by the double yet)")
    return Text(finding.answer, "green" if default else "bold magenta"), Text(meaning)


def _sum(results: Sequence[Finding], output: Path) -> str:
    settled = [finding for finding in results if finding.settled]
    summary = f"{len(settled)} of {len(results)} settled"
    if not settled:
        return f"{summary}; no profile is written."
    return f"{summary}, in {output}. Start a double: agentdouble serve --profile {output}"


def _progress(finding: Finding) -> None:
    if sys.stderr.isatty():
        print(f"{finding.unknown}: {finding.answer or 'not settled'}", file=sys.stderr)  # noqa: T201
