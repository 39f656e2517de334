"""``/_emulator/journal``: the requests, a page at a time, in short or complete."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agentdouble.journal.entries import Entry, Journal
from agentdouble.server import guard

_LONGEST_NUMBER = 18  # digits
_AT_ONCE = 8  # entries that are converted before other requests run
FILTERS: Mapping[str, Callable[[Entry, str], bool]] = {  # they look at what a short entry has
    "method": lambda entry, wanted: entry.method == wanted.upper(),
    "path": lambda entry, wanted: urlsplit(entry.url).path == wanted,
    "status": lambda entry, wanted: str(entry.status) == wanted,
    "action": lambda entry, wanted: wanted in parse_qs(urlsplit(entry.url).query).get("Action", ()),
    "unknown": lambda entry, wanted: wanted in entry.unknowns,
    "unread": lambda entry, wanted: wanted in entry.unread,
    "fault": lambda entry, wanted: wanted in entry.faults,
    "failure": lambda entry, wanted: wanted in entry.failures,
    "session": lambda entry, wanted: entry.session == wanted,
    "caused_by": lambda entry, wanted: str(entry.caused_by) == wanted,
}
_PARAMETERS = ("after", "limit", "bodies", *FILTERS)


class _QueryError(ValueError):
    """A query with a parameter or a value that does not exist."""


@dataclass(frozen=True)
class _Asked:
    after: int
    limit: int | None
    bodies: bool
    filters: Mapping[str, str]

    def found(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the matching entries, oldest first, at most one more than the limit."""
        last = None if self.limit is None else self.limit + 1
        later = (one for one in entries if one.id > self.after)
        return [one for one in later if self._fits(one)][:last]

    def _fits(self, entry: Entry) -> bool:
        return all(FILTERS[name](entry, wanted) for name, wanted in self.filters.items())


def journal_routes(journal: Journal) -> list[Route]:
    """Return the routes, relative to the double's own prefix."""
    routes = _Routes(journal)
    return [
        Route("/journal", routes.some),
        Route("/journal", routes.clear, methods=["DELETE"]),
        Route("/journal/{id}", routes.one),
    ]


class _Routes:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def some(self, request: Request) -> Response:
        """Return the requests in short, or complete with ``bodies=true``."""
        try:
            asked = _read(request)
        except _QueryError as error:
            return _refused(request, 400, "BadRequest", str(error))
        found = asked.found(self._journal.entries())
        more = asked.limit is not None and len(found) > asked.limit
        shown = found[: asked.limit] if more else found
        return StreamingResponse(_written(shown, asked, more), media_type="application/json")

    async def one(self, request: Request) -> Response:
        """Return one complete request."""
        id_ = request.path_params["id"]
        entry = self._journal.find(int(id_)) if _is_number(id_) else None
        if entry is None:
            what = f"The journal has no entry {id_[:40]!r}; it keeps the latest."
            return _refused(request, 404, "NotFound", what)
        return JSONResponse(await asyncio.to_thread(entry.to_dict))

    async def clear(self, _request: Request) -> Response:
        """Remove all requests."""
        self._journal.clear()
        return JSONResponse({"entries": []})


async def _written(entries: Sequence[Entry], asked: _Asked, more: bool) -> AsyncIterator[str]:
    """Yield the answer a few entries at a time; a separate thread converts them to JSON."""
    yield '{"entries":['
    for start in range(0, len(entries), _AT_ONCE):
        some = entries[start : start + _AT_ONCE]
        yield ("," if start else "") + await asyncio.to_thread(_json, some, asked.bodies)
    last = entries[-1].id if entries else asked.after
    yield f'],"last":{last},"more":{json.dumps(more)}}}'


def _json(entries: Sequence[Entry], bodies: bool) -> str:
    return ",".join(json.dumps(one.to_dict(bodies=bodies)) for one in entries)


def _read(request: Request) -> _Asked:
    query = request.query_params
    for name in query:
        if name not in _PARAMETERS:
            near = difflib.get_close_matches(name[:100].lower(), _PARAMETERS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            allowed = ", ".join(_PARAMETERS)
            raise _QueryError(f"The journal knows no {name[:40]!r}.{meant} It has {allowed}.")
    bodies = query.get("bodies", "false")
    if bodies not in ("true", "false"):
        raise _QueryError(f"bodies must be true or false, not {bodies[:40]!r}.")
    limit = _number(query.get("limit"), "limit")
    filters = {name: query[name] for name in FILTERS if name in query}
    return _Asked(_number(query.get("after"), "after") or 0, limit, bodies == "true", filters)


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not _is_number(text):
        raise _QueryError(f"{name} must be a whole number, 0 or more, not {text[:40]!r}.")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def _refused(request: Request, status: int, kind: str, message: str) -> Response:
    return guard.render_json(request, guard.Refusal(status, kind, message))
