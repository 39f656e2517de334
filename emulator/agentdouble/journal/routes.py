"""The routes of the journal.

``/_emulator/journal`` lists the requests, ``/_emulator/events`` streams what happens, and
``/_emulator/what-if`` sends a request again under another answer to an unknown.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agentdouble.core.suggestions import did_you_mean
from agentdouble.journal.entries import Entry, Journal
from agentdouble.journal.filters import FILTERS
from agentdouble.journal.refusals import refused

_LONGEST_NUMBER = 18  # digits
_AT_ONCE = 8  # entries that are converted before other requests run
_PARAMETERS = ("after", "limit", "bodies", *FILTERS)


class _QueryError(ValueError):
    """A query with a parameter or a value that does not exist."""


@dataclass(frozen=True)
class _Query:
    after: int
    limit: int | None
    bodies: bool
    filters: Mapping[str, str]

    def select(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the matching entries, oldest first, at most one more than the limit."""
        last = None if self.limit is None else self.limit + 1
        later = (entry for entry in entries if entry.id > self.after)
        return [entry for entry in later if self._fits(entry)][:last]

    def _fits(self, entry: Entry) -> bool:
        return all(FILTERS[name](entry, value) for name, value in self.filters.items())


def journal_routes(journal: Journal) -> list[Route]:
    """Return the routes, relative to the double's own prefix."""
    routes = _JournalRoutes(journal)
    return [
        Route("/journal", routes.some),
        Route("/journal", routes.clear, methods=["DELETE"]),
        Route("/journal/{id}", routes.entry),
    ]


class _JournalRoutes:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def some(self, request: Request) -> Response:
        """Return the requests in short, or complete with ``bodies=true``."""
        try:
            query = _read(request)
        except _QueryError as error:
            return refused(request, 400, "BadRequest", str(error))
        entries = query.select(self._journal.entries())
        more = query.limit is not None and len(entries) > query.limit
        page = entries[: query.limit] if more else entries
        return StreamingResponse(_written(page, query, more), media_type="application/json")

    async def entry(self, request: Request) -> Response:
        """Return one complete request."""
        id_ = request.path_params["id"]
        entry = self._journal.find(int(id_)) if _is_number(id_) else None
        if entry is None:
            reason = f"The journal has no entry {id_[:40]!r}; it keeps only the latest."
            return refused(request, 404, "NotFound", reason)
        return JSONResponse(await asyncio.to_thread(entry.to_dict))

    async def clear(self, _request: Request) -> Response:
        """Remove all requests."""
        self._journal.clear()
        return JSONResponse({"entries": []})


async def _written(entries: Sequence[Entry], query: _Query, more: bool) -> AsyncIterator[str]:
    """Yield the answer a few entries at a time; a separate thread converts them to JSON."""
    yield '{"entries":['
    for start in range(0, len(entries), _AT_ONCE):
        some = entries[start : start + _AT_ONCE]
        yield ("," if start else "") + await asyncio.to_thread(_json, some, query.bodies)
    last = entries[-1].id if entries else query.after
    yield f'],"last":{last},"more":{json.dumps(more)}}}'


def _json(entries: Sequence[Entry], bodies: bool) -> str:
    return ",".join(json.dumps(entry.to_dict(bodies=bodies)) for entry in entries)


def _read(request: Request) -> _Query:
    query = request.query_params
    for name in query:
        if name not in _PARAMETERS:
            problem = (
                f"The journal has no parameter {name[:40]!r}.{did_you_mean(name, _PARAMETERS)}"
            )
            raise _QueryError(f"{problem} It has {', '.join(_PARAMETERS)}.")
    bodies = query.get("bodies", "false")
    if bodies not in ("true", "false"):
        raise _QueryError(f"bodies must be true or false, not {bodies[:40]!r}.")
    limit = _number(query.get("limit"), "limit")
    filters = {name: query[name] for name in FILTERS if name in query}
    return _Query(_number(query.get("after"), "after") or 0, limit, bodies == "true", filters)


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not _is_number(text):
        raise _QueryError(f"{name} must be a whole number, 0 or more, not {text[:40]!r}.")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
