"""The double's own routes: its clock, journal, sessions and reset."""

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
    Session,
    Sessions,
)
from doublecheck.values.unknowns import Unknowns, ledger_unknowns
from doublecheck.wire import calls
from doublecheck.wire.calls import Call

if TYPE_CHECKING:
    import httpx

PREFIX = "/_emulator"
_CLOCK = f"{PREFIX}/clock"
_UNKNOWNS = f"{PREFIX}/unknowns"


@dataclasses.dataclass(frozen=True)
class UnknownsInUse:
    """A double's ledger: the current answers, by id.

    ``settled`` are the unknowns that a profile settles, and ``relied_on`` those that entries of the
    journal relied on, up to the entry with the id ``last``.
    """

    in_force: Mapping[str, str]
    settled: frozenset[str]
    relied_on: frozenset[str]
    last: int


def health(target: Target) -> Call[bool]:
    """Return the call that finds out whether a double answers."""
    return Call(calls.request(target, "GET", f"{PREFIX}/health", timeout_s=5), _read_health)


def clock(target: Target) -> Call[ClockTime]:
    """Return the call that reads a double's clock. Raise NotADoubleError."""
    _require_double(target, "A readable clock")
    return Call(calls.request(target, "GET", _CLOCK, timeout_s=5), _read_clock)


def advance(target: Target, by: dt.timedelta) -> Call[ClockTime]:
    """Return the call that moves a double's time. Raise NotADoubleError."""
    return _change_clock(target, "A movable clock", {"advance_s": by.total_seconds()})


def freeze(target: Target, frozen: bool) -> Call[ClockTime]:
    """Return the call that stops or restarts a double's clock. Raise NotADoubleError."""
    return _change_clock(target, "A stoppable clock", {"frozen": frozen})


def _change_clock(target: Target, feature: str, body: Mapping[str, Any]) -> Call[ClockTime]:
    _require_double(target, feature)
    content = calls.json_content(body)
    return Call(calls.request(target, "POST", _CLOCK, content=content), _read_clock)


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
    _require_double(target, "reset()")
    query = {"wait": str(wait).lower()}
    if keep is not None:
        query["keep"] = keep if isinstance(keep, str) else ",".join(keep)
    path = f"{PREFIX}/reset?{urlencode(query, safe=',')}"
    return Call(calls.request(target, "POST", path), calls.refuse)


def journal(target: Target) -> Call[Journal]:
    """Return the call that reads a double's journal. Raise NotADoubleError."""
    _require_double(target, "A journal")
    return Call(calls.request(target, "GET", f"{PREFIX}/journal?bodies=true"), _read_journal)


def unknowns(target: Target, after: int = 0) -> Call[UnknownsInUse]:
    """Return the call that reads a double's current answers and the unknowns relied on.

    Only the journal's entries after the id ``after`` count. Raises NotADoubleError.
    """
    _require_double(target, "A ledger of unknowns")
    return Call(calls.request(target, "GET", f"{_UNKNOWNS}?after={after}"), _read_unknowns)


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
    _require_double(target, "A ledger of unknowns")
    content = calls.json_content(dict(chosen))
    return Call(calls.request(target, "PUT", _UNKNOWNS, content=content), _read_unknowns)


def sessions(target: Target) -> Call[Sessions]:
    """Return the call that lists a double's active session instances. Raise NotADoubleError."""
    _require_double(target, "The list of active session instances")
    return Call(calls.request(target, "GET", f"{PREFIX}/sessions"), _read_sessions)


def _require_double(target: Target, feature: str) -> None:
    if not target.admin:
        raise NotADoubleError(feature, target.url)


def _read_health(response: httpx.Response) -> bool:
    try:
        document = response.json()
    except ValueError:
        return False
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


_FAULTS = f"{PREFIX}/faults"
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
    return _call(target, "POST", "", _read_fault, content=calls.json_content(document))


def plan(target: Target) -> Call[FaultPlan]:
    """Return the call that lists the armed faults."""
    return _call(target, "GET", "", _read_plan)


def clear(target: Target) -> Call[FaultPlan]:
    """Return the call that removes every fault."""
    return _call(target, "DELETE", "", _read_plan)


def disarm(target: Target, id_: str) -> Call[ArmedFault]:
    """Return the call that removes a fault."""
    return _call(target, "DELETE", f"/{id_}", _read_fault)


def release(target: Target, id_: str) -> Call[ArmedFault]:
    """Return the call that releases the calls delayed by a fault."""
    return _call(target, "POST", f"/{id_}/release", _read_fault)


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
    return _call(target, "GET", path, read, timeout_s=within_s + _MARGIN_S)


def _call(target: Target, method: str, path: str, read: Any, **request: Any) -> Call[Any]:
    if not target.admin:
        raise NotADoubleError("Arming faults", target.url)
    return Call(calls.request(target, method, _FAULTS + path, **request), read)


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
