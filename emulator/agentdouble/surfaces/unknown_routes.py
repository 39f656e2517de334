"""``/_emulator/unknowns/catalogue``: what is left open, in which words, and who relied on it."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble import ledger
from agentdouble.journal import Journal
from agentdouble.ledger import Ledger, Unknown
from agentdouble.openapi import operation


def unknown_routes(in_force: Ledger, journal: Journal) -> list[Route]:
    """Return the routes, relative to the double's own prefix."""
    return [Route("/unknowns/catalogue", _Routes(in_force, journal).catalogue)]


class ShownAlternative(TypedDict):
    """An answer to an unknown, and whether the double has built it."""

    name: str
    meaning: str
    built: bool
    default: bool


class ShownUnknown(TypedDict):
    """An unknown, its answer in force, and the entries of the journal that relied on it."""

    id: str
    section: str
    question: str
    evidence: str
    in_force: str
    settled: bool
    alternatives: list[ShownAlternative]
    entries: list[int]


class Catalogue(TypedDict):
    """What the specification leaves open, in the order of its sections."""

    unknowns: list[ShownUnknown]


class _Routes:
    def __init__(self, in_force: Ledger, journal: Journal) -> None:
        self._ledger = in_force
        self._journal = journal

    @operation(Catalogue)
    async def catalogue(self, _request: Request) -> Response:
        """Return each unknown with its alternatives, and the entries that relied on it."""
        entries: dict[str, list[int]] = {}
        for entry in self._journal.entries():
            for id_ in entry.unknowns:
                entries.setdefault(id_, []).append(entry.id)
        unknowns = ledger.unknowns().values()
        shown = [self._shown(one, entries.get(one.id, ())) for one in unknowns]
        return JSONResponse({"unknowns": shown})

    def _shown(self, unknown: Unknown, entries: Sequence[int]) -> ShownUnknown:
        answers = (unknown.default, *unknown.alternatives)
        return {
            "id": unknown.id,
            "section": unknown.section,
            "question": unknown.question,
            "evidence": unknown.evidence,
            "in_force": self._ledger.answer(unknown.id).name,
            "settled": unknown.id in self._ledger.settled,
            "alternatives": [
                {
                    "name": one.name,
                    "meaning": one.meaning,
                    "built": one.built,
                    "default": one is unknown.default,
                }
                for one in answers
            ],
            "entries": [*entries],
        }
