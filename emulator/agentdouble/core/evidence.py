"""What the double's answers to the unknowns rest on.

Each unknown has evidence for its default answer, from strong to weak: a measurement, what the
specification says elsewhere, what a published client cannot do without, what a published
implementation does, a sample, or what a client merely accepts. ``summary()`` counts the unknowns
by the strongest of these.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble.errors import LedgerError

MEASURED = "measured on a deployment"
NONE = "none"
GUESS = "a guess"
KINDS = {  # the strongest first, with the words of the summary
    MEASURED: "measured on a deployment for",
    "specification": "rests on other words of a specification for",
    "client asserts": "on what a published client asserts for",
    "reference implementation": "on a published implementation for",
    "sample": "on a sample for",
    "client tolerates": "on what a client tolerates for",
    NONE: "and is a guess for",
}
_STRENGTH = {kind: rank for rank, kind in enumerate(KINDS)}
_KEYS = ("kind", "source", "date", "says", "answer")


@dataclass(frozen=True)
class Evidence:
    """A reason for an answer; ``source`` names its version, ``date`` the day of the look at it.

    ``answer`` is the alternative that it speaks for, or None for the default.
    """

    kind: str
    says: str
    source: str | None = None
    date: dt.date | None = None
    answer: str | None = None

    @property
    def label(self) -> str:
        """Its kind, and the alternative that it speaks for."""
        return self.kind if self.answer is None else f"{self.kind}, for {self.answer}"

    def __str__(self) -> str:
        if self.kind == NONE:
            return self.says
        day = f", {self.date.isoformat()}" if self.date else ""
        return f"{self.label}: {self.says} ({self.source}{day})"


def parse(id_: str, entries: Any, alternatives: Collection[str]) -> tuple[Evidence, ...]:
    """Return the evidence of an unknown from its entries; raise LedgerError if one is wrong.

    ``alternatives`` are the names that an entry may speak for.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise LedgerError(
            f"{id_}: evidence must be a list of tables with {', '.join(_KEYS)}.", unknown=id_
        )
    found = tuple(_one(id_, entry, alternatives) for entry in entries)
    if not any(evidence.answer is None for evidence in found):
        raise LedgerError(
            f"{id_} has no evidence for its default. Where there is none, write "
            f'{{ kind = "{NONE}", says = "{GUESS}" }}.',
            unknown=id_,
        )
    return found


def _one(id_: str, entry: Mapping[str, Any], alternatives: Collection[str]) -> Evidence:
    problem = _problem(entry, alternatives)
    if problem:
        raise LedgerError(
            f"{id_} has evidence {dict(entry)}, which is wrong: {problem}.", unknown=id_
        )
    return Evidence(**entry)


def _problem(entry: Mapping[str, Any], alternatives: Collection[str]) -> str | None:
    kind = entry.get("kind")
    if kind not in KINDS:
        return f"the kinds are {', '.join(KINDS)}"
    if kind == NONE:
        guess = {"kind": NONE, "says": GUESS}
        return None if entry == guess else f'where there is no evidence, it says "{GUESS}" alone'
    if unknown := [key for key in entry if key not in _KEYS]:
        return f"{unknown[0]!r} is none of {', '.join(_KEYS)}"
    if missing := [key for key in ("source", "says") if not _is_text(entry.get(key))]:
        return f"{missing[0]} is missing"
    if not any(character.isdigit() for character in entry["source"]):
        return "the source names no version"
    if type(entry.get("date")) is not dt.date:
        return "date must be a day, like 2026-11-29"
    if entry.get("answer") not in (None, *alternatives):
        return f"{entry['answer']!r} is no alternative"
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def strongest(evidence: Iterable[Evidence], answer: str | None = None) -> str:
    """Return the strongest kind of evidence for an answer, by default for the default."""
    kinds = [it.kind for it in evidence if it.answer == answer]
    return min(kinds, key=lambda kind: _STRENGTH[kind], default=NONE)


def summary(kinds: Collection[str], evidence: Iterable[Evidence]) -> str:
    """Say how many of the unknowns rest on what; ``kinds`` has the strongest of each unknown."""
    counts = Counter(kinds)
    clauses = ", ".join(f"{words} {counts[kind]}" for kind, words in KINDS.items())
    newest = max(it.date for it in evidence if it.date is not None)
    return (
        f"The specification leaves {len(kinds)} behaviours open. The double's answer is {clauses} "
        f"(as of {newest.isoformat()})."
    )
