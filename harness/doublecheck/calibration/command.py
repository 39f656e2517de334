"""``doublecheck calibrate``: its requirements, its probes, its output and its exit code."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import table as rich_table
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agentdouble.core import ledger, profiles
from agentdouble.errors import LedgerError, ProfileError
from doublecheck.calibration import findings
from doublecheck.calibration.findings import Finding
from doublecheck.client._sync.platform import Platform
from doublecheck.client.open_target import opened
from doublecheck.core import atomic_files
from doublecheck.core.markup import Markup, coloured, pre
from doublecheck.core.sanitize import visible
from doublecheck.errors import CalibrationError, MissingExtraError, TargetError
from doublecheck.target.config_files import nearest_project
from doublecheck.target.plan import Sources, plan

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

_HEAD = "doublecheck calibrate: how a deployment behaves where the specification leaves it open."


def check(file: Path) -> None:
    """Raise an error if the profile could not be written, before the first request.

    Raises CalibrationError for an invalid profile or a missing folder, and MissingExtraError.
    """
    try:
        import tomlkit  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(
            "tomlkit, which writes profiles,", install="agentdouble[calibrate]"
        ) from None
    if not file.absolute().parent.is_dir():
        raise CalibrationError(f"The folder {file.absolute().parent} for {file} does not exist.")
    if file.exists():
        _read(file)


def write(file: Path, target: str, findings: Sequence[Finding]) -> None:
    """Write the settled unknowns, and keep the rest of an existing profile with its comments.

    An answer that the double does not support yet is only added as evidence. Raises
    CalibrationError.
    """
    import tomlkit

    document = _read(file) if file.exists() else _new()
    chosen, evidence = (_table(document, name) for name in ("unknowns", "evidence"))
    for finding in findings:
        if not finding.settled:
            continue
        if finding.lived:
            chosen[finding.unknown] = finding.answer
        else:
            chosen.pop(finding.unknown, None)
        evidence[finding.unknown] = _evidence(finding, target)
    _replace(file, tomlkit.dumps(document))


def _new() -> TOMLDocument:
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment(_HEAD))
    return document


def _read(file: Path) -> TOMLDocument:
    import tomlkit

    try:
        profiles.read(file)
    except ProfileError as error:
        raise CalibrationError(f"It cannot be extended: {error}") from None
    return tomlkit.parse(file.read_text("utf-8"))


def _table(document: TOMLDocument, name: str) -> Any:
    import tomlkit

    if name not in document:
        document.add(name, tomlkit.table(is_super_table=name == "evidence"))
    return document[name]


def _evidence(finding: Finding, target: str) -> Table:
    import tomlkit

    table = tomlkit.table()
    table.update(
        {"answer": finding.answer, "target": target, "date": finding.date, "seen": finding.meaning}
    )
    exchanges = tomlkit.array()
    for exchange in finding.exchanges:
        exchanges.append(tomlkit.string(exchange, multiline=True))
    table.add("exchanges", exchanges.multiline(True))
    return table


def _replace(file: Path, text: str) -> None:
    try:
        atomic_files.write(file, text)
    except OSError as error:
        raise CalibrationError(f"{file} cannot be written: {error.strerror}.") from None


SETTLED, NOTHING_SETTLED = 0, 3
_COLUMNS = 120  # in a notebook


def calibrate(
    options: Mapping[str, Any], output: Path, *, only: Sequence[str], slow: bool, as_json: bool
) -> int:
    """Calibrate a platform, write its profile, print the findings, and return the exit code.

    ``options`` give the address of the platform, by key. Raises TargetError, UnreachableError,
    CalibrationError and MissingExtraError.
    """
    _check(only)
    check(output)
    sources = _sources(options)
    planned = plan(sources)
    if "url" not in planned.facts:
        raise TargetError("Give the address of the deployment to calibrate with --url.")
    target, results = opened(sources, planned), []
    with Platform(target) as platform:
        for finding in findings.calibrate(platform, slow=slow, only=only):
            _progress(finding)
            results.append(finding)
    settled = any(finding.settled for finding in results)
    if settled:
        write(output, target.url, results)
    if as_json:
        print(json.dumps(_document(target.url, results), indent=2))  # noqa: T201
    else:
        console = Console()
        show(results, console)
        console.print(Text(_sum(results, output)), soft_wrap=True)
    return SETTLED if settled else NOTHING_SETTLED


def _check(only: Sequence[str]) -> None:
    for id_ in only:
        try:
            ledger.find(id_)
        except LedgerError as error:
            raise CalibrationError(str(error)) from None


def _sources(options: Mapping[str, Any]) -> Sources:
    given_options = {key: value for key, value in options.items() if value not in (None, False)}
    return Sources(given_options, project=nearest_project(), spelled="--{}".format)


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
