"""A profile: the alternatives that a deployment was found to use, and the evidence.

::

    [unknowns]
    U-SESSION-DUPLICATE = "400"

    [evidence.U-SESSION-DUPLICATE]
    answer = "400"
    target = "https://agent.example.com"
    date = "2026-11-21T22:40:00+00:00"
    seen = "the second creation was answered with 400"
    exchanges = ["..."]

``doublecheck calibrate`` writes one, and the setting ``profile`` names it. Only ``[unknowns]``
changes the double's answers; ``[evidence]`` is shown beside them.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agentdouble.core import ledger
from agentdouble.core.evidence import MEASURED, Evidence
from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import LedgerError, ProfileError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SIZE_LIMIT = 4 * 1024 * 1024  # bytes; a profile with evidence on everything has some 100 KiB
_TABLES = ("unknowns", "evidence")
_EVIDENCE = ("answer", "target", "date", "seen", "exchanges")


@dataclass(frozen=True)
class Profile:
    """The alternatives by the ids of their unknowns, and the evidence for each."""

    unknowns: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def make_ledger(self, chosen: Mapping[str, str] = MappingProxyType({})) -> ledger.Ledger:
        """Return the ledger with the profile's answers, and others on top that settle nothing."""
        settled = self.unknowns.keys() - chosen.keys()
        measured = {id_: _measured(self.evidence[id_]) for id_ in settled & self.evidence.keys()}
        return ledger.Ledger({**self.unknowns, **chosen}, settled, measured)


EMPTY = Profile()


def read(file: Path) -> Profile:
    """Return the profile in a file.

    Raises ProfileError, which names the file and the nearest name, if the file cannot be read or
    has an unknown, an alternative or a key that does not exist.
    """
    document = _document(file)
    _check(document, _TABLES, file, "the tables of a profile are")
    chosen, evidence = (_table(document, name, file) for name in _TABLES)
    for id_, name in chosen.items():
        _check_answer(id_, name, file)
    for id_, about in evidence.items():
        _check_evidence(id_, about, file)
    return Profile(chosen, evidence)


def _measured(about: Mapping[str, Any]) -> Evidence:
    says, target = str(about.get("seen", "")), str(about.get("target", "a deployment"))
    try:
        date = dt.datetime.fromisoformat(str(about.get("date"))).date()
    except ValueError:  # a person has written it
        date = None
    return Evidence(MEASURED, says, target, date)


def _document(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as opened:
            content = opened.read(SIZE_LIMIT + 1)
        if len(content) > SIZE_LIMIT:
            raise ProfileError(f"The profile {file} is larger than {SIZE_LIMIT} bytes.", file=file)
        return tomllib.loads(content.decode())
    except OSError as error:
        message = f"The profile {file} cannot be read: {error.strerror}."
        raise ProfileError(message, file=file) from None
    except (ValueError, RecursionError) as error:
        message = f"The profile {file} cannot be read: {error}"
        raise ProfileError(message, file=file) from None


def _table(document: Mapping[str, Any], name: str, file: Path) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise ProfileError(f"In the profile {file}, {name} must be a table: [{name}].", file=file)
    return table


def _check_answer(id_: str, name: Any, file: Path) -> None:
    if not isinstance(name, str):
        message = f'In the profile {file}, {id_} must name an alternative: {id_} = "name".'
        raise ProfileError(message, file=file, unknown=id_)
    try:
        ledger.find(id_).answer(name)
    except LedgerError as error:
        message = f"In the profile {file}: {error}{_nearest_answer(id_, name)}"
        raise ProfileError(message, file=file, unknown=id_) from None


def _nearest_answer(id_: str, name: str) -> str:
    unknown = ledger.unknowns().get(id_)
    if unknown is None:
        return ""
    names = [answer.name for answer in (unknown.default, *unknown.alternatives)]
    return "" if name in names else did_you_mean(name, names)


def _check_evidence(id_: str, about: Any, file: Path) -> None:
    try:
        ledger.find(id_)
    except LedgerError as error:
        message = f"In the evidence of the profile {file}: {error}"
        raise ProfileError(message, file=file, unknown=id_) from None
    if not isinstance(about, dict):
        message = f"In the profile {file}, evidence.{id_} must be a table: [evidence.{id_}]."
        raise ProfileError(message, file=file, unknown=id_)
    _check(about, _EVIDENCE, file, f"the keys of evidence.{id_} are")


def _check(keys: Collection[str], names: Collection[str], file: Path, these: str) -> None:
    for key in keys:
        if key not in names:
            message = f"The profile {file} has {key!r}, which does not exist;"
            there_are = f" {these} {' and '.join(names)}."
            raise ProfileError(message + there_are + did_you_mean(key, names), file=file)
