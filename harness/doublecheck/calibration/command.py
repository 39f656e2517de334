"""``doublecheck calibrate``: its requirements, its probes, its output and its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentdouble import ledger
from agentdouble.errors import LedgerError
from doublecheck.calibration import findings, profile_file
from doublecheck.calibration.findings import Finding
from doublecheck.client._sync.platform import Platform
from doublecheck.client.open_target import opened
from doublecheck.errors import CalibrationError, TargetError
from doublecheck.sanitize import visible
from doublecheck.target.config_files import nearest_project
from doublecheck.target.plan import Sources, plan

SETTLED, NOTHING_SETTLED = 0, 3


def calibrate(
    options: Mapping[str, Any], output: Path, *, only: Sequence[str], slow: bool, as_json: bool
) -> int:
    """Calibrate a platform, write its profile, print the findings, and return the exit code.

    ``options`` give the address of the platform, by key. Raises TargetError, UnreachableError,
    CalibrationError and MissingExtraError.
    """
    _check(only)
    profile_file.check(output)
    sources = _sources(options)
    planned = plan(sources)
    if "url" not in planned.facts:
        raise TargetError("Give the address of the deployment to calibrate with --url.")
    with opened(sources, planned) as target, Platform(target) as platform:
        found = []
        for one in findings.calibrate(platform, slow=slow, only=only):
            _progress(one)
            found.append(one)
    settled = any(one.settled for one in found)
    if settled:
        profile_file.write(output, target.url, found)
    if as_json:
        print(json.dumps(_document(target.url, found), indent=2))  # noqa: T201
    else:
        show(found, output, Console())
    return SETTLED if settled else NOTHING_SETTLED


def _check(only: Sequence[str]) -> None:
    for id_ in only:
        try:
            ledger.find(id_)
        except LedgerError as error:
            raise CalibrationError(str(error)) from None


def _sources(options: Mapping[str, Any]) -> Sources:
    given = {key: value for key, value in options.items() if value not in (None, False)}
    return Sources(given, project=nearest_project(), spelled="--{}".format)


def _document(target: str, found: Sequence[Finding]) -> dict[str, Any]:
    return {"target": target, "findings": [asdict(one) | {"settled": one.settled} for one in found]}


def show(found: Sequence[Finding], output: Path, console: Console) -> None:
    """Print the settled unknowns as a table, and group the others by reason."""
    console.print()
    settled = [one for one in found if one.settled]
    if settled:
        console.print(_table(settled))
        console.print()
    for reason, unknowns in _unsettled(found).items():
        console.print(Text(f"not settled: {visible(reason)}", "yellow"), soft_wrap=True)
        console.print(Padding(Text(", ".join(unknowns), "dim"), (0, 0, 1, 2)))
    console.print(Text(_sum(found, output)), soft_wrap=True)


def _table(settled: Sequence[Finding]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("unknown", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    table.add_column("")
    for one in settled:
        table.add_row(one.unknown, *_table_row(one))
    return table


def _unsettled(found: Sequence[Finding]) -> Mapping[str, Sequence[str]]:
    """Group the unknowns without an answer by their reason."""
    by_reason: dict[str, list[str]] = {}
    for one in found:
        if not one.settled:
            by_reason.setdefault(one.reason, []).append(one.unknown)
    return by_reason


def _table_row(one: Finding) -> tuple[Text, Text]:
    default = ledger.find(one.unknown).default.name == one.answer
    meaning = one.meaning if one.lived else f"{one.meaning} (the double cannot live that yet)"
    return Text(one.answer, "green" if default else "bold magenta"), Text(meaning)


def _sum(found: Sequence[Finding], output: Path) -> str:
    settled = [one for one in found if one.settled]
    told = f"{len(settled)} of {len(found)} settled"
    if not settled:
        return f"{told}; no profile is written."
    return f"{told}, in {output}. A double lives it: agentdouble serve --profile {output}"


def _progress(one: Finding) -> None:
    if sys.stderr.isatty():
        print(f"{one.unknown}: {one.answer or 'not settled'}", file=sys.stderr)  # noqa: T201
