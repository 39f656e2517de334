"""The display of the ledger: each question with its answer, the unknowns relied on first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from doublecheck.notebook.display.markup import (
    GOOD,
    WARNING,
    Markup,
    badge,
    box,
    code,
    element,
    folded,
    joined,
    quiet,
    table,
    title,
)

if TYPE_CHECKING:
    from doublecheck.values.unknowns import Unknown, Unknowns

_HEADS = ("unknown", "answer in force", "alternatives")


def render(unknowns: Unknowns) -> Markup:
    """Return a ledger; the unknowns relied on are visible, the others folded."""
    relied_on = list(unknowns.relied_on.values())
    others = [one for one in unknowns.values() if not one.relied_on]
    counted = badge(f"{len(relied_on)} relied on", WARNING) if relied_on else None
    what = "others" if relied_on else "unknowns"
    return box(
        title("What the specification leaves open", counted),
        _table(relied_on) if relied_on else None,
        folded(f"{len(others)} {what}", _table(others)) if others else None,
    )


def one(unknown: Unknown) -> Markup:
    """Return one question with its answers."""
    return box(_table([unknown]), element("div", quiet(unknown.evidence)))


def _table(unknowns: Sequence[Unknown]) -> Markup:
    return table(_HEADS, ([*_row(unknown)] for unknown in unknowns))


def _row(unknown: Unknown) -> Iterator[Markup]:
    id_ = element("b", unknown.id, style="white-space:nowrap")
    section = quiet(f" section {unknown.section}")
    yield joined((id_, section, element("div", unknown.question)))
    told = unknown.meaning if unknown.meaning != unknown.answer else None
    yield joined((*_answer(unknown), element("div", told)))
    yield joined(_alternative(name, meaning) for name, meaning in unknown.alternatives.items())


def _answer(unknown: Unknown) -> Iterator[Markup]:
    yield code(unknown.answer)
    if unknown.relied_on:
        yield joined((" ", badge("relied on", WARNING)))
    if unknown.settled:
        yield joined((" ", badge("settled", GOOD)))


def _alternative(name: str, meaning: str) -> Markup:
    return element("div", code(name), quiet(f" {meaning}") if meaning != name else None)
