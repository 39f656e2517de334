"""Values that only a double provides: its sessions, its journal, its faults, its ledger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentdouble.core import ledger
from agentdouble.core.evidence import MEASURED, Evidence
from agentdouble.core.suggestions import did_you_mean
from doublecheck.core.notebook_repr import Series, Shown, clock_time, counted, without_token


@dataclass(frozen=True)
class ClockTime:
    """A double's time. ``moved`` is how far it was moved, ``frozen`` whether it is stopped."""

    now: dt.datetime
    moved: dt.timedelta
    frozen: bool

    def __str__(self) -> str:
        return f"{self.now:%Y-%m-%d %H:%M:%S} UTC{', frozen' * self.frozen}"


@dataclass(frozen=True, repr=False)
class SandboxInfo(Shown, drawn_by="notebook.display.double.session"):
    """An active session instance of a double. ``remaining_s`` is in seconds of its clock."""

    session_id: str
    user_session_id: str
    tool_id: str
    created_at: dt.datetime
    deadline: dt.datetime
    remaining_s: float
    executions: int
    pids: tuple[int, ...]

    def __repr__(self) -> str:
        remaining = f"{clock_time(self.remaining_s)} left"
        return (
            f"<SandboxInfo {self.user_session_id} {remaining}, "
            f"{counted(self.executions, 'execution')}>"
        )


class SandboxInfos(
    Series[SandboxInfo], noun="session", drawn_by="notebook.display.double.sessions"
):
    """The active session instances of a double."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class JournalEntry(Shown, drawn_by="notebook.display.double.entry"):
    """A request that a double served. ``curl`` is a command that repeats it.

    ``unread`` names the fields of the request that were not used, ``faults`` the faults that fired
    for it. ``session`` is the id of the session instance that it used, ``caused_by`` the id of the
    entry whose code sent it.
    """

    id: int
    at: dt.datetime
    method: str
    url: str
    status: int | None
    duration_ms: float | None
    unknowns: tuple[str, ...]
    unread: tuple[str, ...]
    curl: str = field(repr=False)
    request_headers: Mapping[str, str] = field(repr=False)
    request_body: str = field(repr=False)
    response_headers: Mapping[str, str] = field(repr=False)
    response_body: str = field(repr=False)
    faults: tuple[str, ...] = ()
    session: str | None = None
    caused_by: int | None = None

    def __repr__(self) -> str:
        status = "no answer" if self.status is None else self.status
        took = "" if self.duration_ms is None else f" {self.duration_ms:.0f} ms"
        relied = f", {counted(len(self.unknowns), 'unknown')}" if self.unknowns else ""
        met = "".join(f", {fault}" for fault in self.faults)
        return f"<JournalEntry {self.id} {self.method} {without_token(self.url)} {status}{took}{relied}{met}>"


class Journal(Series[JournalEntry], noun="request", drawn_by="notebook.display.double.journal"):
    """The requests that a double served, oldest first."""

    __slots__ = ()


class SandboxLog(Journal, drawn_by="notebook.display.sandbox_log.log"):
    """The requests that a double served, shown as code, session and answer."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class ModelRequest:
    """A request to a double's model; ``form`` is its wire form, ``tools`` are those that it offers.

    ``prompt`` is the last text of the user. ``turns`` are the messages in one form for all wire
    forms: objects with role, text, calls, name and call_id. ``body`` is the request's JSON.
    """

    form: str
    model: str
    prompt: str
    tools: tuple[str, ...]
    stream: bool
    turns: tuple[Mapping[str, Any], ...] = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"<ModelRequest {self.form} {self.model} {self.prompt[:60]!r}>"


class ModelRequests(Series[ModelRequest], noun="model request"):
    """The requests to a double's model, oldest first."""

    __slots__ = ()


@dataclass(frozen=True)
class ModelState:
    """A double's model: its requests, and the answers of its scripts that no request used.

    ``unused`` has the descriptions of the answers by the description of their script's condition.
    """

    requests: ModelRequests
    unused: Mapping[str, Sequence[str]]


@dataclass(frozen=True, repr=False)
class ArmedFault:
    """A fault of a double. ``described`` describes it in one line.

    ``calls`` is the number of calls of its operation since it was armed, of which ``met`` were
    selected for the fault. It fired ``fired`` times.
    """

    id: str
    kind: str
    operation: str
    described: str
    calls: int
    met: int
    fired: int

    def __repr__(self) -> str:
        return f"<ArmedFault {self.id} {self.described}: fired {self.fired} of {self.met}>"


class ArmedFaults(Series[ArmedFault], noun="fault"):
    """The faults of a double."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class FaultPlan:
    """The armed faults of a double, and the operations that were called while it had any."""

    faults: tuple[ArmedFault, ...]
    seen: Mapping[str, int]

    def __repr__(self) -> str:
        described = "".join(f"; {fault.described}" for fault in self.faults)
        return f"<FaultPlan {counted(len(self.faults), 'fault')}{described}>"


@dataclass(frozen=True)
class Unknown(Shown, drawn_by="notebook.display.double.unknown"):
    """One question that the specification leaves open, and the current answer.

    ``alternatives`` are the other answers, by name, with their meanings. ``settled``: a profile
    contains a deployment's answer. ``evidence`` is what there is for the default and for others,
    ``rests_on`` the strongest kind of it for the current answer. ``relied_on``: an answer of this
    double has depended on it since its journal was emptied.
    """

    id: str
    section: str
    question: str
    answer: str
    meaning: str
    alternatives: Mapping[str, str]
    evidence: tuple[Evidence, ...]
    rests_on: str
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
        if id_ not in self._found:
            raise KeyError(f"There is no unknown {id_!r}.{did_you_mean(id_, self._found)}")
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
    unknowns = {}
    for id_, unknown in ledger.unknowns().items():
        answer = (in_force or {}).get(id_, unknown.default.name)
        options = (unknown.default, *unknown.alternatives)
        meanings = {option.name: option.meaning for option in options}
        unknowns[id_] = Unknown(
            id=id_,
            section=unknown.section,
            question=unknown.question,
            answer=answer,
            meaning=meanings.pop(answer, ""),
            alternatives=meanings,
            evidence=unknown.evidence,
            rests_on=MEASURED if id_ in settled else unknown.rests_on(answer),
            settled=id_ in settled,
            relied_on=id_ in relied_on,
        )
    return Unknowns(unknowns)
