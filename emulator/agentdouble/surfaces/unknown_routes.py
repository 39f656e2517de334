"""``/_emulator/unknowns``: the unknowns, the answers in force, and the requests that used them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.core import ledger
from agentdouble.core.ledger import Ledger, Unknown
from agentdouble.errors import LedgerError
from agentdouble.surfaces.surface import Context, RefusedError, read_json

_LONGEST_ID = 18  # digits


def unknown_routes(context: Context) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise RefusedError."""
    routes = _Routes(context)
    return [
        Route("/unknowns", routes.in_force),
        Route("/unknowns", routes.change, methods=["PUT"]),
        Route("/unknowns/catalogue", routes.catalogue),
    ]


class _Routes:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def in_force(self, request: Request) -> Response:
        """Return the answers in force, and those that journal entries relied on.

        With ``after``, the id of an entry, only later entries count.
        """
        after = request.query_params.get("after", "0")
        if not after.isdecimal() or len(after) > _LONGEST_ID:
            raise RefusedError(400, "BadRequest", "after must be the id of a journal entry.")
        return JSONResponse(self._document(int(after)))

    async def change(self, request: Request) -> Response:
        """Choose other answers, on top of those of the double's start, until the next change.

        A reset keeps them, so that tests can run under an alternative.
        """
        try:
            self._context.ledger.change(_choices(await request.body()))
        except (ValueError, LedgerError) as error:
            raise RefusedError(400, "BadRequest", str(error)) from None
        if self._context.events.watched:
            self._context.events.publish("unknowns", "", "chosen", self._answers)
        return JSONResponse(self._document(0))

    def _answers(self) -> Mapping[str, Mapping[str, str]]:
        return {"in_force": self._context.ledger.answers()}

    def _document(self, after: int) -> dict[str, Any]:
        ledger = self._context.ledger
        entries = [entry for entry in self._context.journal.entries() if entry.id > after]
        return {
            "in_force": ledger.answers(),
            "settled": sorted(ledger.settled),
            "relied_on": sorted({id_ for entry in entries for id_ in entry.unknowns}),
            "last": entries[-1].id if entries else after,
        }

    async def catalogue(self, _request: Request) -> Response:
        """Return each unknown with its alternatives, and the entries that relied on it."""
        entries: dict[str, list[int]] = {}
        for entry in self._context.journal.entries():
            for id_ in entry.unknowns:
                entries.setdefault(id_, []).append(entry.id)
        unknowns = ledger.unknowns().values()
        documents = [
            _shown_unknown(self._context.ledger, unknown, entries.get(unknown.id, ()))
            for unknown in unknowns
        ]
        return JSONResponse({"unknowns": documents})


def _shown_unknown(in_force: Ledger, unknown: Unknown, entries: Sequence[int]) -> dict[str, Any]:
    answers = (unknown.default, *unknown.alternatives)
    return {
        "id": unknown.id,
        "section": unknown.section,
        "question": unknown.question,
        "evidence": unknown.evidence,
        "in_force": in_force.answer(unknown.id).name,
        "settled": unknown.id in in_force.settled,
        "alternatives": [
            {
                "name": answer.name,
                "meaning": answer.meaning,
                "built": answer.built,
                "default": answer is unknown.default,
            }
            for answer in answers
        ],
        "entries": [*entries],
    }


def _choices(body: bytes) -> Mapping[str, str]:
    explanation = 'The body must be {"U-...": "alternative"}'
    document = read_json(body, explanation)
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise ValueError(f"{explanation}.")
    return document
