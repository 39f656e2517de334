"""What-if: send a request of the journal again, under another answer to an unknown.

Three doubles are started for it, with the running double's applications, tools and settings: two
under the answers in force, and one under the other. Where the first two differ, ids and times
differ; where they agree and the third does not, the other answer made the difference. Earlier
requests of the journal on which the request relies are sent to each first. The doubles end with
the question. An application that was passed in as an object runs in this process, so state that it
keeps elsewhere, such as in variables of its module, is shared with the running double.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field

from agentdouble.core import request_cause
from agentdouble.core.ledger import Ledger, find
from agentdouble.core.redaction import redact, without_secrets
from agentdouble.core.signing import Credentials
from agentdouble.core.threads import run_in_thread
from agentdouble.core.unmocked_http import AsyncClient, AsyncTransport
from agentdouble.errors import AgentDoubleError, LedgerError
from agentdouble.journal import resending
from agentdouble.journal.entries import Entry, Journal, RawHeaders, Start, encodable
from agentdouble.journal.json_leaves import leaves, unfolded
from agentdouble.journal.resending import CannotRepeatError
from agentdouble.journal.what_if_differences import differences

# Called with answers to unknowns. Entering the context manager blocks, and returns the address of a
# double.
StartDouble: TypeAlias = Callable[[Mapping[str, str]], AbstractContextManager[str]]

T = TypeVar("T")

LONGEST_S = 60.0
_AT_ONCE = 3  # doubles, which are enough for a machine
MOST = 20  # earlier requests that are sent first
_LARGEST = 64 * 1024  # characters of a body
_MOST_DIFFERENCES = 200
_READING = ("GET", "HEAD", "OPTIONS")
_READING_ACTIONS = ("Get", "List")
_ID_FIELD = re.compile(r"(?:id|Id|ID)$")
_NO_ID_FIELD = re.compile(r"(?:user|app|tool|message|request|invocation|caller)_?id$|^id$", re.I)
_ID_HEADERS = (b"mcp-session-id", b"session_id")
_ID = re.compile(r"[\w.:+/=-]{8,}", re.ASCII)
_OF_THE_CONNECTION = frozenset(
    {
        b"host",
        b"content-length",
        b"connection",
        b"transfer-encoding",
        b"expect",
        request_cause.RAW_HEADER,
    }
)
_PATH = "/:@!$&'()*+,;=~-._"


class WhatIfQuestion(BaseModel):
    """A question: what would the answer to this entry be if the unknown had this answer?"""

    model_config = ConfigDict(extra="forbid", strict=True)

    entry: int = Field(ge=1)
    unknown: str
    answer: str


class AlternativesQuestion(BaseModel):
    """A question: what is the answer to this entry under each of these answers to unknowns?"""

    model_config = ConfigDict(extra="forbid", strict=True)

    entry: int = Field(ge=1)
    alternatives: list[dict[str, str]] = Field(min_length=1, max_length=_AT_ONCE)


class WhatIfError(AgentDoubleError):
    """A question that no double could answer."""

    def __init__(self, message: str, kind: str, status: int) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status


@dataclass(frozen=True)
class RepeatedRequest:
    """A request of the journal, as it was sent to the running double."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class AlternativeAnswer:
    """An answer; ``status`` is None if the connection ended, and ``error`` says why.

    It has the running double's ids, as far as they are at the same places.
    """

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    error: str | None = None
    body_cut: bool = False

    @property
    def text(self) -> str:
        """The body as text."""
        return self.error or self.body.decode("utf-8", "replace")

    def leaves(self) -> Mapping[str, Any]:
        """Return the values in headers and body by their paths, with the JSON inside texts."""
        body = unfolded(self.text, self.headers.get("content-type", ""))
        return leaves({"headers": dict(self.headers), "body": body})


@dataclass(frozen=True)
class WhatIf:
    """Sends a request of a running double again, to other doubles that it starts."""

    journal: Journal
    ledger: Ledger
    credentials: Credentials
    start: StartDouble
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, question: WhatIfQuestion) -> dict[str, Any]:
        """Return what differs; raise CannotRepeatError, LedgerError or WhatIfError."""
        entry = self._repeatable(question.entry)
        in_force = self.ledger.answer(question.unknown).name
        if find(question.unknown).answer(question.answer).name == in_force:
            message = f"{question.answer!r} is already the answer to {question.unknown}."
            raise LedgerError(message, unknown=question.unknown)
        return await self._in_time(self._compare(entry, question, in_force))

    async def answers(self, question: AlternativesQuestion) -> dict[str, Any]:
        """Return the answer under each alternative; raise like ``ask``.

        An alternative has answers to some unknowns. The others are those in force.
        """
        entry = self._repeatable(question.entry)
        for alternative in question.alternatives:
            for unknown, answer in alternative.items():
                find(unknown).answer(answer)
        answers, _, repeatable = await self._in_time(self._answers(entry, question.alternatives))
        return {
            "entry": entry.id,
            "answers": [_complete(answer) for answer in answers],
            "asked_before": [request.id for request in repeatable],
        }

    def _repeatable(self, id_: int) -> Entry:
        """Return an entry that can be sent again. Raises CannotRepeatError."""
        entry = self.journal.find(id_)
        if entry is None:
            raise resending.dropped_entry_error()
        if not entry.url.startswith("http"):
            raise CannotRepeatError("A WebSocket cannot be sent again.")
        if entry.duration_ms is None:
            raise CannotRepeatError("This request has no answer yet.")
        # This raises before a double is started.
        resending.headers(entry, resending.whole_body(entry), self.credentials)
        return entry

    async def _in_time(self, answers: Coroutine[Any, Any, T]) -> T:
        async with self._lock:
            try:
                return await asyncio.wait_for(answers, LONGEST_S)
            except asyncio.TimeoutError:
                message = f"The doubles did not answer within {LONGEST_S:.0f} s."
                raise WhatIfError(message, "TimedOut", 504) from None

    async def _compare(
        self, entry: Entry, question: WhatIfQuestion, in_force: str
    ) -> dict[str, Any]:
        changed = {question.unknown: question.answer}
        answers, earlier, repeatable = await self._answers(entry, [{}, {}, changed])
        first, again, other = answers
        request = _request(entry)
        differ = await run_in_thread(lambda: differences(request, first, again, other))
        return {
            "entry": entry.id,
            "unknown": question.unknown,
            "in_force": _shown(in_force, first),
            "other": _shown(question.answer, other),
            "differences": differ[:_MOST_DIFFERENCES],
            "asked_before": [request.id for request in repeatable],
            "notes": [*_notes(entry, question, first, earlier, repeatable)],
        }

    async def _answers(
        self, entry: Entry, alternatives: Sequence[Mapping[str, str]]
    ) -> tuple[list[AlternativeAnswer], list[Entry], list[Entry]]:
        """Return an answer for each alternative, the earlier requests, and those that were sent."""
        entries = self.journal.entries()
        earlier = await run_in_thread(lambda: earlier_requests(entry, entries))
        repeatable = [request for request in earlier if self._is_repeatable(request)]
        in_force = self.ledger.answers()
        answers = await _gather(
            self._answer(self.start({**in_force, **alternative}), [*repeatable, entry])
            for alternative in alternatives
        )
        return answers, earlier, repeatable

    def _is_repeatable(self, entry: Entry) -> bool:
        try:
            resending.headers(entry, resending.whole_body(entry), self.credentials)
        except CannotRepeatError:
            return False
        return True

    async def _answer(
        self, double: AbstractContextManager[str], entries: Sequence[Entry]
    ) -> AlternativeAnswer:
        """Send requests to a double, and return the answer to the last one."""
        async with _entered(double) as url:
            sender = Sender(url, self.credentials)
            for entry in entries:
                answer = await sender.send(entry)
        return answer


def earlier_requests(entry: Entry, entries: Sequence[Entry]) -> list[Entry]:
    """Return the last requests that created what an entry relies on, oldest first.

    They belong to the same session or the list that it reads, or their answers contain ids that
    later requests use. Requests that code of another request sent are omitted, because that code
    will send them again.
    """
    wanted, listed = _ids_in_request(entry), _listed(entry)
    found: list[Entry] = []
    for earlier in reversed(entries):
        if earlier.id >= entry.id or earlier.caused_by or not _has_changed_something(earlier):
            continue
        ids = _ids_in_request(earlier)
        in_session = entry.session is not None and earlier.session == entry.session
        in_list = listed is not None and urlsplit(earlier.url).path.startswith(listed)
        if in_session or in_list or wanted & (ids | _ids_in_answer(earlier)):
            found.append(earlier)
            wanted |= ids
    return found[:MOST][::-1]


def _listed(entry: Entry) -> str | None:
    """Return the path of a list of a user's sessions, None for any other request."""
    path = urlsplit(entry.url).path
    return path if entry.method == "GET" and path.endswith("/sessions") else None


def _has_changed_something(entry: Entry) -> bool:
    action = _action(entry)
    reads = action.startswith(_READING_ACTIONS) if action else entry.method in _READING
    return not reads and entry.status is not None and entry.status < 400


def _action(entry: Entry) -> str:
    return parse_qs(urlsplit(entry.url).query).get("Action", [""])[0]


def _ids_in_request(entry: Entry) -> set[str]:
    segments = [unquote(part) for part in urlsplit(entry.url).path.split("/")]
    in_path = (
        segment
        for before, segment in itertools.pairwise(segments)
        if before in ("sessions", "tasks", "mcp")
    )
    in_head = (value.decode("latin-1") for name, value in entry.request_head if name in _ID_HEADERS)
    return {id_ for id_ in (*in_path, *in_head, *_ids(_json(entry.request_start))) if id_}


def _ids_in_answer(entry: Entry) -> set[str]:
    """Return the ids in an answer, and the name of what an action created."""
    in_head = (
        value.decode("latin-1") for name, value in entry.response_head if name in _ID_HEADERS
    )
    answer, request = _json(entry.response_start), _json(entry.request_start)
    own = [answer.get("id")] if isinstance(answer, dict) else []
    if _action(entry) and isinstance(request, dict):
        own.append(request.get("Name"))
    return {*in_head, *_ids(answer), *(name for name in own if isinstance(name, str))}


def _json(start: Start | None) -> Any:
    body = start.full_body() if start is not None else None
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _ids(value: Any) -> Iterator[str]:
    for path, leaf in leaves(value).items():
        name = path.rpartition(".")[2]
        if isinstance(leaf, str) and _ID_FIELD.search(name) and not _NO_ID_FIELD.search(name):
            yield leaf


@dataclass
class Sender:
    """A client of one double; it maps the ids of the journal to those of this double."""

    url: str
    credentials: Credentials
    _ids: dict[str, str] = field(default_factory=dict)

    async def send(self, entry: Entry) -> AlternativeAnswer:
        """Send a request of the journal, and learn ids from the answer."""
        answer = await self._send(entry)
        body = (entry.response_start and entry.response_start.full_body()) or b""
        before = AlternativeAnswer(entry.status, _head(entry.response_head), body)
        now = answer.leaves()
        for path, old in before.leaves().items():
            new = now.get(path)
            if old != new and _is_id(old) and _is_id(new):
                self._ids[str(old)] = str(new)
        back = {new: old for old, new in self._ids.items()}
        return dataclasses.replace(
            answer,
            headers={name: _replaced(text, back) for name, text in answer.headers.items()},
            body=_replaced(answer.body.decode("latin-1"), back).encode("latin-1"),
        )

    async def _send(self, entry: Entry) -> AlternativeAnswer:
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
        head = [header for header in signed if header[0] not in _OF_THE_CONNECTION]
        try:
            request = httpx.Request(here.method, here.url, headers=head, content=body)
            async with AsyncClient(transport=AsyncTransport(verify=False), timeout=None) as client:
                response = await client.send(request)
        except httpx.InvalidURL as error:
            message = f"The address of this request cannot be sent: {error}"
            raise CannotRepeatError(message) from None
        except httpx.HTTPError as error:
            return AlternativeAnswer(None, {}, b"", f"{type(error).__name__}: {error}")
        named = {name: self._without_address(text) for name, text in response.headers.items()}
        body = self._without_address(response.content.decode("latin-1")).encode("latin-1")
        return AlternativeAnswer(response.status_code, named, body)

    def _without_address(self, text: str) -> str:
        return text.replace(self.url, "http://double").replace(self.url[7:], "double")

    def _with_ids(self, text: str) -> str:
        return _replaced(text, self._ids)


def _replaced(text: str, values: Mapping[str, str]) -> str:
    for old in sorted(values, key=len, reverse=True):
        text = text.replace(old, values[old])
    return text


def _request(entry: Entry) -> RepeatedRequest:
    return RepeatedRequest(
        entry.method, entry.url, _head(entry.request_head), resending.whole_body(entry)
    )


def _head(raw: RawHeaders) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


@asynccontextmanager
async def _entered(double: AbstractContextManager[str]) -> AsyncIterator[str]:
    """Enter a context manager that blocks, and leave it even if the client has left by then."""
    starting = asyncio.ensure_future(run_in_thread(double.__enter__))

    async def leave() -> None:
        with contextlib.suppress(Exception):  # it did not start, and the caller gets its error
            await starting
            await run_in_thread(lambda: double.__exit__(None, None, None))

    try:
        try:
            url = await asyncio.shield(starting)
        except (AgentDoubleError, RuntimeError, OSError) as error:
            message = f"No double could start with that answer: {error}"
            raise WhatIfError(message, "CannotStart", 409) from None
        yield url
    finally:
        await asyncio.shield(asyncio.ensure_future(leave()))


async def _gather(answers: Iterator[Any]) -> list[AlternativeAnswer]:
    """Wait for all; if one fails, or the client leaves, cancel the others and wait for their end."""
    tasks = [asyncio.ensure_future(answer) for answer in answers]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _complete(answer: AlternativeAnswer) -> dict[str, Any]:
    return {
        "status": answer.status,
        "headers": {name: redact(name, text) for name, text in answer.headers.items()},
        "body": encodable(without_secrets(answer.body.decode("utf-8", "replace"))),
        "error": answer.error,
    }


def _shown(name: str, answer: AlternativeAnswer) -> dict[str, Any]:
    text = without_secrets(answer.text[:_LARGEST])
    body = text + "..." * (len(answer.text) > _LARGEST)
    return {"answer": name, "status": answer.status, "body": body}


def _notes(
    entry: Entry,
    question: WhatIfQuestion,
    first: AlternativeAnswer,
    earlier: Sequence[Entry],
    repeatable: Sequence[Entry],
) -> Iterator[str]:
    if question.unknown not in entry.unknowns:
        yield f"The answer to request {entry.id} did not rely on {question.unknown}."
    if entry.faults:
        yield "Faults happened to this request; the fresh doubles have none armed."
    lost = [str(request.id) for request in earlier if request not in repeatable]
    if lost:
        ids = ", ".join(lost)
        yield f"Requests {ids} were not sent, because the journal does not have them completely."
    if len(earlier) == MOST:
        yield f"Only the last {MOST} requests that it relied on were sent before it."
    if not entry.faults and first.status != entry.status:
        yield (
            f"The running double answered {entry.status}, a fresh one {first.status} under the same "
            "answers: the request relied on something that a fresh double does not have."
        )
