"""The three doubles that answer a question, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx

from agentdouble import causes, resending
from agentdouble.errors import AgentDoubleError, LedgerError
from agentdouble.journal import Entry, Journal, Start
from agentdouble.ledger import Ledger, find
from agentdouble.redaction import without_secrets
from agentdouble.resending import CannotRepeatError, gone, headers, whole_body
from agentdouble.signing import Credentials
from agentdouble.threads import run_in_thread
from agentdouble.unmocked_http import AsyncClient, AsyncTransport
from agentdouble.what_if.beside import Beside
from agentdouble.what_if.differences import differences, leaves, unfolded
from agentdouble.what_if.values import Found, Question, Reply, WhatIfError

MOST = 20
_READING = ("GET", "HEAD", "OPTIONS")
_READING_ACTIONS = ("Get", "List")
_ID = re.compile(r"(?:id|Id|ID)$")
_NO_ID = re.compile(r"(?:user|app|message|request|invocation|caller)_?id$|^id$", re.IGNORECASE)
_SESSION_HEADERS = (b"mcp-session-id", b"session_id")


def relied_on(entry: Entry, entries: Sequence[Entry], known: Collection[str]) -> list[Entry]:
    """Return the requests that came before an entry and made what it relies on, oldest first.

    ``known`` are the ids that every double has. At most the last ``MOST`` are returned.
    """
    by_id = {one.id: one for one in entries}
    sessions = {entry.session} | {one.session for one in entries if one.caused_by == entry.id}
    sessions.discard(None)
    wanted = _uses(entry) - set(known)
    found: dict[int, Entry] = {}
    for one in reversed([one for one in entries if one.id < entry.id]):
        if not _changes(one) or one.id == entry.caused_by:
            continue
        uses = _uses(one) - set(known)
        if one.session in sessions or (uses | _makes(one)) & wanted:
            first = _first_cause(one, by_id, entry)
            found[first.id] = first
            wanted |= uses
    kept = sorted(found)
    inner = {id_ for id_ in kept if found[id_].caused_by in found}
    return [found[id_] for id_ in kept if id_ not in inner][-MOST:]


def _first_cause(one: Entry, by_id: Mapping[int, Entry], entry: Entry) -> Entry:
    """Return the request of a client whose code sent this one.

    What code sent relies on what code sent before it, and not on the agent that ran it.
    """
    return one if entry.caused_by else by_id.get(one.caused_by or 0, one)


def _changes(one: Entry) -> bool:
    """Return whether a request was accepted and may have changed something."""
    action = _action(one)
    reads = action.startswith(_READING_ACTIONS) if action else one.method in _READING
    return not reads and one.status is not None and one.status < 400


def _action(one: Entry) -> str:
    return parse_qs(urlsplit(one.url).query).get("Action", [""])[0]


def _uses(one: Entry) -> set[str]:
    """Return the ids that a request names."""
    segments = [unquote(part) for part in urlsplit(one.url).path.split("/")]
    after = {"sessions", "tasks", "mcp"}
    named = {two for first, two in itertools.pairwise(segments) if first in after}
    sent = {value.decode("latin-1") for name, value in one.request_head if name in _SESSION_HEADERS}
    return {id_ for id_ in (*named, *sent, *_ids(_json(one.request_start))) if id_}


def _makes(one: Entry) -> set[str]:
    """Return the ids in an answer, and the name of what an action created."""
    heads = {
        value.decode("latin-1") for name, value in one.response_head if name == b"mcp-session-id"
    }
    answer, asked = _json(one.response_start), _json(one.request_start)
    named = [asked.get("Name")] if _action(one) and isinstance(asked, dict) else []
    own = [answer.get("id")] if isinstance(answer, dict) else []
    return {*heads, *_ids(answer), *(text for text in (*named, *own) if isinstance(text, str))}


def _json(start: Start | None) -> Any:
    body = start.whole() if start is not None else None
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _ids(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _ids(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if isinstance(one, str) and _ID.search(name) and not _NO_ID.search(name):
                yield one
            else:
                yield from _ids(one)


LARGEST = 1024 * 1024  # bytes of an answer that are read
_OF_THE_CONNECTION = frozenset(
    {b"host", b"content-length", b"connection", b"transfer-encoding", b"expect", causes.RAW_HEADER}
)
_ID_TEXT = re.compile(r"[\w.:+/=-]{8,}", re.ASCII)
_PATH = "/:@!$&'()*+,;=~-._"


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID_TEXT.fullmatch(value) is not None


@dataclass(frozen=True)
class Answer:
    """An answer; ``status`` is None if the connection ended, and ``text`` says why."""

    status: int | None
    headers: Mapping[str, str]
    text: str
    is_cut: bool = False

    def document(self) -> Mapping[str, Any]:
        """Return all of it as one JSON value, with the JSON inside texts unfolded."""
        kind = self.headers.get("content-type", "")
        return {
            "status": self.status,
            "headers": dict(self.headers),
            "body": unfolded(self.text, kind),
        }


@dataclass
class Sender:
    """A client of one double; it learns which ids that double gave for those of the journal."""

    url: str
    credentials: Credentials
    _known: dict[str, str] = field(default_factory=dict)

    async def repeat(self, entry: Entry) -> Answer:
        """Send a request that was answered before, and learn from the answer."""
        answer = await self.send(entry)
        kept = entry.response_start.whole() if entry.response_start is not None else None
        kind = answer.headers.get("content-type", "")
        head = {k.decode("latin-1"): v.decode("latin-1") for k, v in entry.response_head}
        before = {"headers": head, "body": unfolded((kept or b"").decode("utf-8", "replace"), kind)}
        now = leaves(answer.document())
        for path, old in leaves(before).items():
            new = now.get(path)
            if old != new and _is_id(old) and _is_id(new):
                self._known[str(old)] = str(new)
        return answer

    async def send(self, entry: Entry) -> Answer:
        """Send a request; raise CannotRepeatError if the journal does not have it completely."""
        body = self._with_ids(resending.whole_body(entry).decode("latin-1")).encode("latin-1")
        parts = urlsplit(self._with_ids(entry.url))
        query = f"?{parts.query}" if parts.query else ""
        here = dataclasses.replace(
            entry,
            url=f"{self.url}{quote(parts.path, _PATH)}{query}",
            request_head=[
                (name, self._with_ids(value.decode("latin-1")).encode("latin-1"))
                for name, value in entry.request_head
            ],
        )
        signed = resending.headers(here, body, self.credentials)
        head = [one for one in signed if one[0] not in _OF_THE_CONNECTION]
        try:
            request = httpx.Request(here.method, here.url, headers=head, content=body)
            async with AsyncClient(transport=AsyncTransport(verify=False), timeout=None) as client:
                return await self._read(await client.send(request, stream=True))
        except httpx.InvalidURL as error:
            raise CannotRepeatError(
                f"The address of this request cannot be sent: {error}"
            ) from None
        except httpx.HTTPError as error:
            return Answer(None, {}, f"{type(error).__name__}: {error}")

    async def _read(self, response: httpx.Response) -> Answer:
        kept, size = [], 0
        try:
            async for part in response.aiter_bytes():
                kept.append(part[: LARGEST - size])
                size += len(part)
                if size > LARGEST:
                    break
        finally:
            await response.aclose()
        text = b"".join(kept).decode("utf-8", "replace")
        headers = {name: self._anywhere(value) for name, value in response.headers.items()}
        return Answer(response.status_code, headers, self._anywhere(text), size > LARGEST)

    def _anywhere(self, text: str) -> str:
        """Return text without the address of this double."""
        return text.replace(self.url, "http://double").replace(self.url[7:], "double")

    def _with_ids(self, text: str) -> str:
        for old in sorted(self._known, key=len, reverse=True):
            text = text.replace(old, self._known[old])
        return text


LONGEST_S = 60.0
_SHOWN = 64 * 1024  # characters of a body
_DIFFERENCES = 200


@dataclass(frozen=True)
class Asking:
    """What questions are asked of: a running double, and how others are started beside it."""

    journal: Journal
    ledger: Ledger
    credentials: Credentials
    beside: Beside
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, question: Question) -> Found:
        """Return what differs; raise CannotRepeatError, LedgerError or WhatIfError."""
        entry = self._entry(question["entry"])
        answer = self._chosen(question)
        async with self._turn:  # three doubles at a time are enough for a machine
            try:
                return await asyncio.wait_for(self._found(entry, question, answer), LONGEST_S)
            except asyncio.TimeoutError:
                message = f"The three doubles did not answer within {LONGEST_S:.0f} s."
                raise WhatIfError(message, "TimedOut", 504) from None

    def _entry(self, id_: int) -> Entry:
        entry = self.journal.find(id_)
        if entry is None:
            raise gone()
        if not entry.url.startswith("http"):
            raise CannotRepeatError("A WebSocket cannot be asked again.")
        if entry.duration_ms is None:
            raise CannotRepeatError("This request is not answered yet.")
        headers(entry, whole_body(entry), self.credentials)  # refused now, and not by each double
        return entry

    def _chosen(self, question: Question) -> str:
        """Return the name of the answer in force; raise LedgerError if the other cannot be asked."""
        id_, other = question["unknown"], question["answer"]
        unknown = find(id_)
        in_force = self.ledger.answer(id_).name
        if unknown.answer(other).name == in_force:
            raise LedgerError(f"{id_} is answered by {other!r} already.", unknown=id_)
        return in_force

    async def _found(self, entry: Entry, question: Question, in_force: str) -> Found:
        text = whole_body(entry).decode("utf-8", "replace") + entry.url
        known = self.beside.tools()
        tools = {id_ for id_ in known if id_ in text}
        entries = self.journal.entries()
        found = await run_in_thread(lambda: relied_on(entry, entries, known))
        earlier, lost = _complete(found, self.credentials)
        now = self.ledger.answers()
        then = {**now, question["unknown"]: question["answer"]}
        first, again, other = await _together(
            _Run(self.beside.start(answers, tools), earlier, entry, self.credentials)
            for answers in (now, now, then)
        )
        differ = await run_in_thread(
            lambda: differences(first.document(), again.document(), other.document())
        )
        return {
            "entry": entry.id,
            "unknown": question["unknown"],
            "in_force": _shown(in_force, first),
            "other": _shown(question["answer"], other),
            "differences": differ[:_DIFFERENCES],
            "asked_before": [one.id for one in earlier],
            "notes": [
                *_notes(entry, question, first, len(earlier), lost),
                *_left_out(len(differ) - _DIFFERENCES),
            ],
        }


@dataclass(frozen=True)
class _Run:
    """One double, the requests that come first, and the one that counts."""

    double: AbstractContextManager[str]
    earlier: Sequence[Entry]
    entry: Entry
    credentials: Credentials

    async def answer(self) -> Answer:
        async with _entered(self.double) as url:
            sender = Sender(url, self.credentials)
            for one in self.earlier:
                await sender.repeat(one)
            return await sender.send(self.entry)


@asynccontextmanager
async def _entered(double: AbstractContextManager[str]) -> AsyncIterator[str]:
    """Enter a context manager that blocks, and leave it even if the client has gone meanwhile."""
    starting = asyncio.ensure_future(run_in_thread(double.__enter__))

    async def leave() -> None:
        with contextlib.suppress(Exception):  # it did not start, as the caller is told
            await starting
            await run_in_thread(lambda: double.__exit__(None, None, None))

    try:
        try:
            url = await asyncio.shield(starting)
        except (AgentDoubleError, RuntimeError, OSError) as error:
            message = f"No double starts under that answer: {error}"
            raise WhatIfError(message, "CannotStart", 409) from None
        yield url
    finally:
        await asyncio.shield(asyncio.ensure_future(leave()))


async def _together(runs: Iterable[_Run]) -> list[Answer]:
    tasks = [asyncio.ensure_future(run.answer()) for run in runs]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _complete(
    entries: Sequence[Entry], credentials: Credentials
) -> tuple[list[Entry], list[Entry]]:
    """Return the entries that can be asked again, and the others."""
    kept, lost = [], []
    for one in entries:
        try:
            headers(one, whole_body(one), credentials)
        except CannotRepeatError:
            lost.append(one)
        else:
            kept.append(one)
    return kept, lost


def _shown(name: str, answer: Answer) -> Reply:
    text = without_secrets(answer.text[:_SHOWN])
    is_cut = answer.is_cut or len(answer.text) > _SHOWN
    return {"answer": name, "status": answer.status, "body": text + "..." * is_cut}


def _left_out(more: int) -> Iterator[str]:
    if more > 0:
        yield f"{more} more differences are not shown."


def _notes(
    entry: Entry, question: Question, first: Answer, earlier: int, lost: Sequence[Entry]
) -> Iterator[str]:
    if question["unknown"] not in entry.unknowns:
        yield f"The answer to request {entry.id} did not rely on {question['unknown']}."
    if entry.faults:
        yield "Faults happened to this request; the fresh doubles have none armed."
    if lost:
        ids = ", ".join(str(one.id) for one in lost)
        yield f"Left out, because the journal does not have them completely: requests {ids}."
    if earlier + len(lost) == MOST:
        yield f"Only the last {MOST} requests that it relied on were asked before it."
    if not entry.faults and first.status != entry.status:
        yield (
            f"The running double answered {entry.status}, a fresh one {first.status} under the same "
            "answers: the request relied on something that a fresh double does not have, such as "
            "what programs of runtimes, other pages of the console or the journal's lost requests "
            "made."
        )
