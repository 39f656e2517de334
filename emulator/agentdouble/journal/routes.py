"""The routes of the journal.

``/_emulator/journal`` lists the requests, ``/_emulator/events`` streams what happens, and
``/_emulator/what-if`` sends a request again under another answer to an unknown.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agentdouble.core.event_bus import EventBus, Listener
from agentdouble.core.ledger import Ledger
from agentdouble.core.signing import Credentials
from agentdouble.core.threads import import_in_thread
from agentdouble.errors import LedgerError
from agentdouble.journal.entries import Entry, Journal
from agentdouble.journal.resending import CannotRepeatError
from agentdouble.server import guard
from agentdouble.server.disconnects import ListenerResponse, cancel_on_disconnect
from agentdouble.server.guard import Refusal

if TYPE_CHECKING:
    from agentdouble.journal.what_if import WhatIf

_LONGEST_NUMBER = 18  # digits
_AT_ONCE = 8  # entries that are converted before other requests run
FILTERS: Mapping[str, Callable[[Entry, str], bool]] = {  # they look at what a short entry has
    "method": lambda entry, value: entry.method == value.upper(),
    "path": lambda entry, value: urlsplit(entry.url).path == value,
    "status": lambda entry, value: str(entry.status) == value,
    "action": lambda entry, value: value in parse_qs(urlsplit(entry.url).query).get("Action", ()),
    "unknown": lambda entry, value: value in entry.unknowns,
    "unread": lambda entry, value: value in entry.unread,
    "fault": lambda entry, value: value in entry.faults,
    "failure": lambda entry, value: value in entry.failures,
    "session": lambda entry, value: entry.session == value,
    "caused_by": lambda entry, value: str(entry.caused_by) == value,
}
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
    routes = _Routes(journal)
    return [
        Route("/journal", routes.some),
        Route("/journal", routes.clear, methods=["DELETE"]),
        Route("/journal/{id}", routes.entry),
    ]


class _Routes:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def some(self, request: Request) -> Response:
        """Return the requests in short, or complete with ``bodies=true``."""
        try:
            query = _read(request)
        except _QueryError as error:
            return _refused(request, 400, "BadRequest", str(error))
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
            return _refused(request, 404, "NotFound", reason)
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
            problem = f"The journal has no parameter {name[:40]!r}.{_hint(name, _PARAMETERS)}"
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


def _refused(request: Request, status: int, kind: str, message: str) -> Response:
    return guard.render_json(request, guard.Refusal(status, kind, message))


ABOUT_THE_STREAM = ("listening", "resync")
NAMES = (
    *("request", "session", "clock", "fault", "unknowns"),
    *("tool", "service", "runtime", "double", "journal"),
)


def event_routes(events: EventBus) -> list[Route]:
    """Return the route, relative to the double's own prefix; it raises TooManyListenersError."""

    async def follow(request: Request) -> Response:
        """Stream what happens in the double from now on."""
        only = request.query_params.get("only")
        names = NAMES if only is None else [name for name in only.split(",") if name]
        for name in names:
            if name not in NAMES:
                message = f"There is no event {name[:40]!r}.{_hint(name, NAMES)}"
                message += f" only may name {', '.join(NAMES)}."
                return _refused(request, 400, "BadRequest", message)
        return ListenerResponse(events.listen(), _writer({*names, *ABOUT_THE_STREAM}))

    return [Route("/events", follow)]


def _writer(names: Collection[str]) -> Callable[[Listener], AsyncGenerator[str, None]]:
    async def written(listener: Listener) -> AsyncGenerator[str, None]:
        async with aclosing(listener.events()) as events:
            async for event in events:
                if event is None:
                    yield ":\n\n"
                elif event.name in names:
                    yield f"event: {event.name}\ndata: {event.data}\n\n"

    return written


def _hint(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name[:100].lower(), names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


_SHAPE = (
    'The body must be {"entry": N, "unknown": "U-...", "answer": "alternative"}, with the id of a '
    "journal entry."
)
_LARGEST = 64 * 1024  # bytes of a question; reading more would block the loop

# Called with answers to unknowns. To enter what it returns, the address of a double, blocks.
StartDouble: TypeAlias = Callable[[Mapping[str, str]], AbstractContextManager[str]]


def what_if_routes(
    journal: Journal, ledger: Ledger, credentials: Credentials, start: StartDouble
) -> list[Route]:
    """Return the route, relative to the double's own prefix."""
    what_if: WhatIf | None = None

    async def ask(request: Request) -> Response:
        """Send a request of the journal again, on fresh doubles, under another answer.

        The answer shows what differs by more than ids and times. Earlier requests on which it
        relies are sent first, as far as the journal has them. All of their code runs again, on
        three doubles.
        """
        nonlocal what_if
        await import_in_thread("agentdouble.journal.what_if")
        from agentdouble.journal.what_if import Question, WhatIf, WhatIfError  # slow: httpx

        what_if = what_if or WhatIf(journal, ledger, credentials, start)
        body = await request.body()
        try:
            question = Question.model_validate_json(body if len(body) <= _LARGEST else b"")
            result = await cancel_on_disconnect(request.receive, what_if.ask(question))
            return JSONResponse(result)
        except WhatIfError as error:
            refusal = Refusal(error.status, error.kind, str(error))
        except CannotRepeatError as error:
            kind = "NotFound" if error.status == 404 else "CannotRepeat"
            refusal = Refusal(error.status, kind, str(error))
        except LedgerError as error:
            refusal = Refusal(400, "LedgerError", str(error))
        except ValidationError:
            refusal = Refusal(400, "BadRequest", _SHAPE)
        return guard.render_json(request, refusal)

    return [Route("/what-if", ask, methods=["POST"])]
