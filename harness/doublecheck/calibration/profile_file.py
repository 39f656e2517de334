"""Write the findings into a new or an existing profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentdouble import profiles
from agentdouble.errors import ProfileError
from doublecheck import atomic_files
from doublecheck.calibration.findings import Finding
from doublecheck.errors import CalibrationError, MissingExtraError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

_HEAD = "What a deployment answers where the specification leaves it open: doublecheck calibrate."


def check(file: Path) -> None:
    """Raise an error if the profile could not be written, before any request is sent.

    Raises CalibrationError for an invalid profile or a missing folder, and MissingExtraError.
    """
    try:
        import tomlkit  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(
            "tomlkit, which writes profiles,", install="agentdouble[calibrate]"
        ) from None
    if not file.absolute().parent.is_dir():
        raise CalibrationError(f"There is no folder {file.absolute().parent} to write {file} to.")
    if file.exists():
        _read(file)


def write(file: Path, target: str, findings: Sequence[Finding]) -> None:
    """Write the settled unknowns; keep the rest of an existing profile, with its comments.

    An answer that the double does not support yet is only added as evidence. Raises
    CalibrationError.
    """
    import tomlkit

    document = _read(file) if file.exists() else _new()
    chosen, evidence = (_table(document, name) for name in ("unknowns", "evidence"))
    for one in findings:
        if not one.settled:
            continue
        if one.lived:
            chosen[one.unknown] = one.answer
        else:
            chosen.pop(one.unknown, None)
        evidence[one.unknown] = _evidence(one, target)
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
    for one in finding.exchanges:
        exchanges.append(tomlkit.string(one, multiline=True))
    table.add("exchanges", exchanges.multiline(True))
    return table


def _replace(file: Path, text: str) -> None:
    try:
        atomic_files.write(file, text)
    except OSError as error:
        raise CalibrationError(f"{file} cannot be written: {error.strerror}.") from None
