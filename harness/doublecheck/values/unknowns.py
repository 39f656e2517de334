"""The ledger of a double as values: the unknowns, the answers, and the unknowns relied on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentdouble.core import ledger
from doublecheck.core.notebook_repr import Shown


@dataclass(frozen=True)
class Unknown(Shown, drawn_by="notebook.display.double.unknown"):
    """One question that the specification leaves open, and the current answer.

    ``alternatives`` are the other answers, by name, with their meanings. ``settled``: a profile
    contains a deployment's answer. ``relied_on``: an answer of this double has depended on it since
    its journal was emptied.
    """

    id: str
    section: str
    question: str
    answer: str
    meaning: str
    alternatives: Mapping[str, str]
    evidence: str
    settled: bool = False
    relied_on: bool = False

    def __repr__(self) -> str:
        parts = [self.answer, *(["settled"] if self.settled else [])]
        parts += ["relied on"] if self.relied_on else []
        return f"<Unknown {self.id}: {', '.join(parts)}>"


class Unknowns(Mapping[str, Unknown], Shown, drawn_by="notebook.display.double.unknowns"):
    """Unknowns by their ids, in the order of the ledger."""

    def __init__(self, unknowns: Mapping[str, Unknown]) -> None:
        self._found = dict(unknowns)

    @property
    def relied_on(self) -> Unknowns:
        """The unknowns that an answer relied on."""
        return Unknowns({id_: unknown for id_, unknown in self.items() if unknown.relied_on})

    def __getitem__(self, id_: str) -> Unknown:
        return self._found[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<Unknowns: {len(self)}, {len(self.relied_on)} relied on>"


def ledger_unknowns(
    in_force: Mapping[str, str] | None = None,
    settled: frozenset[str] = frozenset(),
    relied_on: frozenset[str] = frozenset(),
) -> Unknowns:
    """Return the ledger with the current answers, by default the defaults."""
    chosen = in_force or {}
    return Unknowns(
        {
            id_: _unknown(
                unknown, chosen.get(id_, unknown.default.name), id_ in settled, id_ in relied_on
            )
            for id_, unknown in ledger.unknowns().items()
        }
    )


def _unknown(unknown: ledger.Unknown, answer: str, settled: bool, relied_on: bool) -> Unknown:
    meanings = {option.name: option.meaning for option in (unknown.default, *unknown.alternatives)}
    return Unknown(
        unknown.id,
        unknown.section,
        unknown.question,
        answer,
        meanings.pop(answer, ""),
        meanings,
        unknown.evidence,
        settled,
        relied_on,
    )
