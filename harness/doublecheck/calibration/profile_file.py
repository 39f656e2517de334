"""Write what a calibration found out into a profile, whose other lines and comments stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentdouble.core import profiles
from agentdouble.errors import ProfileError
from doublecheck.calibration.finding import Finding
from doublecheck.core import atomic_files
from doublecheck.errors import CalibrationError, MissingExtraError

try:
    import tomlkit
    from tomlkit import TOMLDocument
    from tomlkit.items import Table
except ModuleNotFoundError:
    raise MissingExtraError(
        "tomlkit, which writes profiles,", install="agentdouble[calibrate]"
    ) from None

_HEAD = "doublecheck calibrate: how a deployment behaves where the specification leaves it open."


def check(file: Path) -> None:
    """Raise an error if the profile could not be written, before the first request.

    Raises CalibrationError for an invalid profile or a missing folder.
    """
    if not file.absolute().parent.is_dir():
        raise CalibrationError(f"The folder {file.absolute().parent} for {file} does not exist.")
    if file.exists():
        _read(file)


def write(file: Path, target: str, findings: Sequence[Finding]) -> None:
    """Write the settled unknowns, and keep the rest of an existing profile with its comments.

    An answer that the double does not support yet is only added as evidence. Raises
    CalibrationError.
    """
    document = _read(file) if file.exists() else tomlkit.parse(f"# {_HEAD}\n")
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


def _read(file: Path) -> TOMLDocument:
    try:
        profiles.read(file)
    except ProfileError as error:
        raise CalibrationError(f"It cannot be extended: {error}") from None
    return tomlkit.parse(file.read_text("utf-8"))


def _table(document: TOMLDocument, name: str) -> Any:
    if name not in document:
        document.add(name, tomlkit.table(is_super_table=name == "evidence"))
    return document[name]


def _evidence(finding: Finding, target: str) -> Table:
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
