"""The format of the double's own routes: its clock, journal, sessions, faults and model."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doublecheck.errors import FaultError, NotADoubleError, RefusedError
from doublecheck.target.target import Target
from doublecheck.values.double import (
    ArmedFault,
    ArmedFaults,
    ClockTime,
    FaultPlan,
    Journal,
    JournalEntry,
    ModelRequest,
    ModelRequests,
    ModelState,
    SandboxInfo,
    SandboxInfos,
)
from doublecheck.values.executions import Completion
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

PREFIX = "/_emulator"
_MODEL_FIELDS = ("form", "model", "prompt", "stream", "body")


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


@dataclass(frozen=True)
class RepeatedAnswer:
    """A double's answer under other answers to unknowns."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    error: str | None


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


def health(target: Target) -> Call[str | None]:
    """Return the call that finds out why it is not a double that answers; None if it is one."""
    return Call(calls.request(target, "GET", f"{PREFIX}/health", timeout_s=5), _read_health)


def _read_health(response: httpx.Response) -> str | None:
    try:
        calls.refuse(response)
    except RefusedError as error:
        return str(error)
    document = calls.json_or_none(response.content)
    if isinstance(document, dict) and document.get("status") == "ok":
        return None
    return f"{calls.route(response)} returned something else"


def read_clock(response: httpx.Response) -> ClockTime:
    """Read the time of a double's clock."""
    document = calls.read_json(response)
    return ClockTime(
        now=dt.datetime.fromisoformat(document["now"]),
        moved=dt.timedelta(seconds=document["offset_s"]),
        frozen=bool(document.get("frozen")),
    )


def read_journal(response: httpx.Response) -> Journal:
    """Read a journal."""
    return Journal(_entry(entry) for entry in calls.read_json(response)["entries"])


def _entry(entry: Mapping[str, Any]) -> JournalEntry:
    # a newer double may send more fields, an older one has none for those with a default
    names = {field.name for field in dataclasses.fields(JournalEntry)}
    fields = {name: value for name, value in entry.items() if name in names}
    at = dt.datetime.fromisoformat(entry["at"])
    named = {name: tuple(entry[name]) for name in ("unknowns", "unread", "faults")}
    return JournalEntry(**{**fields, **named, "at": at})


def read_unknowns(response: httpx.Response) -> UnknownsInUse:
    """Read the answers of a ledger and the unknowns relied on."""
    document = calls.read_json(response)
    settled, relied_on = (frozenset(document[name]) for name in ("settled", "relied_on"))
    return UnknownsInUse(document["in_force"], settled, relied_on, document["last"])


def read_alternatives(response: httpx.Response) -> Sequence[RepeatedAnswer]:
    """Read the answers to a request that a double sent again."""
    return [
        RepeatedAnswer(it["status"], it["headers"], it["body"].encode(), it["error"])
        for it in calls.read_json(response)["answers"]
    ]


def read_left_out(response: httpx.Response) -> Mapping[str, str]:
    """Read what snapshots do not contain, by their ids."""
    document = calls.read_json(response)
    return {it["SnapshotId"]: ", ".join(it["left_out"]) for it in document["snapshots"]}


def read_sandboxes(response: httpx.Response) -> SandboxInfos:
    """Read the active session instances."""
    return SandboxInfos(_sandbox(session) for session in calls.read_json(response)["sessions"])


def _sandbox(session: Mapping[str, Any]) -> SandboxInfo:
    return SandboxInfo(
        session_id=session["SessionId"],
        user_session_id=session["UserSessionId"],
        tool_id=session["ToolId"],
        created_at=dt.datetime.fromisoformat(session["created_at"]),
        deadline=dt.datetime.fromisoformat(session["deadline"]),
        remaining_s=session["remaining_s"],
        executions=session["executions"],
        pids=tuple(session["pids"]),
    )


def read_completion(response: httpx.Response) -> Completion:
    """Read the completions of code."""
    document = calls.read_json(response)
    return Completion(tuple(document["matches"]), document["cursor_start"], document["cursor_end"])


def read_fault_plan(response: httpx.Response) -> FaultPlan:
    """Read the armed faults."""
    document = calls.read_json(response)
    return FaultPlan(ArmedFaults(_fault(fault) for fault in document["faults"]), document["seen"])


def read_fault(response: httpx.Response) -> ArmedFault:
    """Read an armed fault. Raise FaultError if the double refuses it."""
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


def read_model_state(response: httpx.Response) -> ModelState:
    """Read the state of a model."""
    document = calls.read_json(response)
    requests = ModelRequests(
        ModelRequest(
            turns=tuple(request["turns"]),
            tools=tuple(request["tools"]),
            **{name: request[name] for name in _MODEL_FIELDS},
        )
        for request in document["requests"]
    )
    unused = {script["when"]: script["unused"] for script in document["scripts"]}
    return ModelState(requests, {when: steps for when, steps in unused.items() if steps})
