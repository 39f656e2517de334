"""The double's own routes: its clock, journal, sessions, faults, model and reset."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from doublecheck.core.notebook_repr import counted
from doublecheck.errors import ArgumentError, FaultError, NotADoubleError
from doublecheck.target.target import Target
from doublecheck.values.double import (
    ArmedFault,
    ArmedFaults,
    ClockTime,
    Journal,
    JournalEntry,
    ModelRequest,
    ModelRequests,
    Session,
    Sessions,
    Unknowns,
    ledger_unknowns,
)
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

PREFIX = "/_emulator"


@dataclass(frozen=True)
class UnknownsInUse:
    """A double's ledger: the current answers, by id.

    ``settled`` are the unknowns that a profile settles, and ``relied_on`` those that entries of the
    journal relied on, up to the entry with the id ``last``.
    """

    in_force: Mapping[str, str]
    settled: frozenset[str]
    relied_on: frozenset[str]
    last: int


def request(
    target: Target,
    feature: str,
    method: str,
    path: str,
    document: Any = None,
    timeout_s: float | None = None,
) -> Request:
    """Return a request to a double's own route, with JSON if given. Raise NotADoubleError."""
    if not target.admin:
        raise NotADoubleError(feature, target.url)
    content = b"" if document is None else calls.json_content(document)
    return calls.request(target, method, PREFIX + path, content=content, timeout_s=timeout_s)


def health(target: Target) -> Call[bool]:
    """Return the call that finds out whether a double answers."""
    return Call(calls.request(target, "GET", f"{PREFIX}/health", timeout_s=5), _read_health)


def clock(target: Target) -> Call[ClockTime]:
    """Return the call that reads a double's clock. Raise NotADoubleError."""
    return Call(request(target, "A readable clock", "GET", "/clock", timeout_s=5), _read_clock)


def advance(target: Target, by: dt.timedelta) -> Call[ClockTime]:
    """Return the call that moves a double's time. Raise NotADoubleError."""
    document = {"advance_s": by.total_seconds()}
    return Call(request(target, "A movable clock", "POST", "/clock", document), _read_clock)


def freeze(target: Target, frozen: bool) -> Call[ClockTime]:
    """Return the call that stops or restarts a double's clock. Raise NotADoubleError."""
    document = {"frozen": frozen}
    return Call(request(target, "A stoppable clock", "POST", "/clock", document), _read_clock)


def duration(by: dt.timedelta | None, **units: float) -> dt.timedelta:
    """Return the sum of a duration's arguments. Raise ArgumentError."""
    try:
        total = (by or dt.timedelta(0)) + dt.timedelta(**units)
    except (OverflowError, ValueError) as error:  # infinity, or not a number
        raise ArgumentError(f"The clock cannot be advanced: {error}.") from None
    if total < dt.timedelta(0):
        raise ArgumentError(
            f"The clock cannot move back ({total.total_seconds():g} seconds). platform.reset() "
            "sets it to the time of this machine."
        )
    return total


def reset(target: Target, wait: bool, keep: Sequence[str] | None = None) -> Call[None]:
    """Return the call that resets a double, except for parts to keep. Raise NotADoubleError."""
    query = {"wait": str(wait).lower()}
    if keep is not None:
        query["keep"] = keep if isinstance(keep, str) else ",".join(keep)
    path = f"/reset?{urlencode(query, safe=',')}"
    return Call(request(target, "reset()", "POST", path), calls.refuse)


def journal(target: Target) -> Call[Journal]:
    """Return the call that reads a double's journal. Raise NotADoubleError."""
    return Call(request(target, "A journal", "GET", "/journal?bodies=true"), _read_journal)


def unknowns(target: Target, after: int = 0) -> Call[UnknownsInUse]:
    """Return the call that reads a double's current answers and the unknowns relied on.

    Only the journal's entries after the id ``after`` count. Raises NotADoubleError.
    """
    path = f"/unknowns?after={after}"
    return Call(request(target, "A ledger of unknowns", "GET", path), _read_unknowns)


def ledger(target: Target) -> Call[Unknowns]:
    """Return the call that reads a double's ledger. Raise NotADoubleError."""

    def read(response: httpx.Response) -> Unknowns:
        usage = _read_unknowns(response)
        return ledger_unknowns(usage.in_force, usage.settled, usage.relied_on)

    return Call(unknowns(target).request, read)


def choose(target: Target, chosen: Mapping[str, str]) -> Call[UnknownsInUse]:
    """Return the call that changes a double's answers, until the next change.

    The changes apply to the answers at its start; ``{}`` restores those. Raises NotADoubleError.
    """
    document = dict(chosen)
    return Call(
        request(target, "A ledger of unknowns", "PUT", "/unknowns", document), _read_unknowns
    )


def sessions(target: Target) -> Call[Sessions]:
    """Return the call that lists a double's active session instances. Raise NotADoubleError."""
    feature = "The list of active session instances"
    return Call(request(target, feature, "GET", "/sessions"), _read_sessions)


def _read_health(response: httpx.Response) -> bool:
    document = calls.json_or_none(response.content)
    return response.is_success and isinstance(document, dict) and document.get("status") == "ok"


def _read_clock(response: httpx.Response) -> ClockTime:
    document = calls.read_json(response)
    return ClockTime(
        now=dt.datetime.fromisoformat(document["now"]),
        moved=dt.timedelta(seconds=document["offset_s"]),
        frozen=bool(document.get("frozen")),
    )


def _read_journal(response: httpx.Response) -> Journal:
    return Journal(_entry(entry) for entry in calls.read_json(response)["entries"])


def _entry(entry: Mapping[str, Any]) -> JournalEntry:
    # a newer double may send more fields, an older one has none for those with a default
    names = {field.name for field in dataclasses.fields(JournalEntry)}
    fields = {name: value for name, value in entry.items() if name in names}
    at = dt.datetime.fromisoformat(entry["at"])
    named = {name: tuple(entry[name]) for name in ("unknowns", "unread", "faults")}
    return JournalEntry(**{**fields, **named, "at": at})


def _read_unknowns(response: httpx.Response) -> UnknownsInUse:
    document = calls.read_json(response)
    settled, relied_on = (frozenset(document[name]) for name in ("settled", "relied_on"))
    return UnknownsInUse(document["in_force"], settled, relied_on, document["last"])


def _read_sessions(response: httpx.Response) -> Sessions:
    return Sessions(_session(session) for session in calls.read_json(response)["sessions"])


def _session(session: Mapping[str, Any]) -> Session:
    return Session(
        session_id=session["SessionId"],
        user_session_id=session["UserSessionId"],
        tool_id=session["ToolId"],
        created_at=dt.datetime.fromisoformat(session["created_at"]),
        deadline=dt.datetime.fromisoformat(session["deadline"]),
        remaining_s=session["remaining_s"],
        executions=session["executions"],
        pids=tuple(session["pids"]),
    )


_MARGIN_S = 30.0


@dataclass(frozen=True, repr=False)
class FaultPlan:
    """The armed faults of a double, and the operations that were called while it had any."""

    faults: tuple[ArmedFault, ...]
    seen: Mapping[str, int]

    def __repr__(self) -> str:
        described = "".join(f"; {fault.described}" for fault in self.faults)
        return f"<FaultPlan {counted(len(self.faults), 'fault')}{described}>"


def arm(target: Target, document: Mapping[str, Any]) -> Call[ArmedFault]:
    """Return the call that arms a fault. It raises FaultError for an invalid one."""
    return Call(_faults(target, "POST", "", document), _read_fault)


def plan(target: Target) -> Call[FaultPlan]:
    """Return the call that lists the armed faults."""
    return Call(_faults(target, "GET", ""), _read_plan)


def clear(target: Target) -> Call[FaultPlan]:
    """Return the call that removes every fault."""
    return Call(_faults(target, "DELETE", ""), _read_plan)


def disarm(target: Target, id_: str) -> Call[ArmedFault]:
    """Return the call that removes a fault."""
    return Call(_faults(target, "DELETE", f"/{id_}"), _read_fault)


def release(target: Target, id_: str) -> Call[ArmedFault]:
    """Return the call that releases the calls delayed by a fault."""
    return Call(_faults(target, "POST", f"/{id_}/release"), _read_fault)


def wait(target: Target, id_: str, fired: int, within_s: float) -> Call[ArmedFault]:
    """Return the call that waits until a fault has fired, or raises FaultError."""

    def read(response: httpx.Response) -> ArmedFault:
        fault = _read_fault(response)
        if fault.fired < fired:
            raise FaultError(
                f"{fault.described} fired {fault.fired} of {fired} times within {within_s:g} s; "
                f"its operation was called {fault.calls} times."
            )
        return fault

    path = f"/{id_}?fired={fired}&within_s={within_s}"
    return Call(_faults(target, "GET", path, timeout_s=within_s + _MARGIN_S), read)


def _faults(
    target: Target, method: str, path: str, document: Any = None, timeout_s: float | None = None
) -> Request:
    return request(target, "Arming faults", method, f"/faults{path}", document, timeout_s)


def _read_plan(response: httpx.Response) -> FaultPlan:
    document = calls.read_json(response)
    return FaultPlan(ArmedFaults(_fault(fault) for fault in document["faults"]), document["seen"])


def _read_fault(response: httpx.Response) -> ArmedFault:
    if response.status_code in (400, 404):
        raise FaultError(_refusal(response))
    return _fault(calls.read_json(response))


def _refusal(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"The double does not support faults: {response.text[:200]}"


def _fault(document: Mapping[str, Any]) -> ArmedFault:
    counts = {name: document[name] for name in ("calls", "met", "fired")}
    return ArmedFault(
        id=document["id"],
        kind=document["kind"],
        operation=document["operation"],
        described=document["described"],
        **counts,
    )


_FIELDS = ("form", "model", "prompt", "stream", "body")


@dataclass(frozen=True)
class ModelState:
    """A double's model: its requests, and the answers of its scripts that no request used.

    ``unused`` has the descriptions of the answers by the description of their script's condition.
    """

    requests: ModelRequests
    unused: Mapping[str, Sequence[str]]


def model_state(target: Target) -> Call[ModelState]:
    """Return the call that reads the state of the model."""
    return Call(_model(target, "GET"), _read_state)


def change_model(target: Target, document: Mapping[str, Any]) -> Call[ModelState]:
    """Return the call that adds a script or sets the names of models."""
    return Call(_model(target, "POST", "", document), _read_state)


def clear_model(target: Target) -> Call[ModelState]:
    """Return the call that removes every script."""
    return Call(_model(target, "DELETE"), _read_state)


def start_recording(target: Target, document: Mapping[str, Any]) -> Call[int]:
    """Return the call that starts to record or to replay."""
    request = _model(target, "POST", "/recording", document)
    return Call(request, lambda response: int(calls.read_json(response)["exchanges"]))


def recording(target: Target) -> Call[list[dict[str, Any]]]:
    """Return the call that reads the recorded requests with their answers."""
    request = _model(target, "GET", "/recording")
    return Call(request, lambda response: list(calls.read_json(response)["exchanges"]))


def _model(target: Target, method: str, path: str = "", document: Any = None) -> Request:
    return request(target, "A scripted model", method, f"/model{path}", document)


def _read_state(response: httpx.Response) -> ModelState:
    document = calls.read_json(response)
    requests = ModelRequests(
        ModelRequest(
            turns=tuple(request["turns"]),
            tools=tuple(request["tools"]),
            **{name: request[name] for name in _FIELDS},
        )
        for request in document["requests"]
    )
    unused = {script["when"]: script["unused"] for script in document["scripts"]}
    return ModelState(requests, {when: steps for when, steps in unused.items() if steps})
