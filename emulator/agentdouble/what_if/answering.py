"""The three doubles that answer a question, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field

from agentdouble.errors import AgentDoubleError, LedgerError
from agentdouble.journal import Entry, Journal
from agentdouble.ledger import Ledger, find
from agentdouble.redaction import without_secrets
from agentdouble.resending import CannotRepeatError, gone, headers, whole_body
from agentdouble.signing import Credentials
from agentdouble.threads import run_in_thread
from agentdouble.what_if.beside import Beside
from agentdouble.what_if.differences import differences
from agentdouble.what_if.earlier import MOST, relied_on
from agentdouble.what_if.sending import Answer, Sender
from agentdouble.what_if.values import Found, Question, Reply, WhatIfError

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
