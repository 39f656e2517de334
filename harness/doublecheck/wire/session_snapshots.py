"""Snapshots of sandbox sessions through the control plane: take, list, delete, resume."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agentdouble.code_tool import DEFAULT_AGENT, Invocation
from doublecheck.target.target import Target
from doublecheck.values.session_snapshots import SessionSnapshot
from doublecheck.wire import sandbox
from doublecheck.wire.calls import Call

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_PAGE = 100


@dataclass(frozen=True)
class Page:
    """A page of the snapshots of a tool; ``next_token`` is "" on the last."""

    snapshots: tuple[SessionSnapshot, ...]
    next_token: str


def session(target: Target, user_id: str, session_id: str, when: dt.datetime) -> Call[str]:
    """Return the call that returns the SessionId of a user's session, created if necessary."""
    name = Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id
    return _call(target, "CreateSession", {"UserSessionId": name}, when, _session_id)


def create(target: Target, session_id: str, when: dt.datetime) -> Call[str]:
    """Return the call that takes a snapshot of a session, by its SessionId, and returns its id."""
    body = {"SessionId": session_id}
    return _call(target, "CreateSessionSnapshot", body, when, _id)


def get(target: Target, snapshot_id: str, when: dt.datetime) -> Call[SessionSnapshot]:
    """Return the call that returns a snapshot."""
    body = {"SnapshotId": snapshot_id}
    return _call(target, "GetSessionSnapshot", body, when, lambda one: _snapshot(one["Snapshot"]))


def page(target: Target, token: str, when: dt.datetime) -> Call[Page]:
    """Return the call that lists the snapshots of the sandbox tool from a token on."""
    body: dict[str, Any] = {"MaxResults": _PAGE}
    if token:
        body["NextToken"] = token
    return _call(target, "ListSessionSnapshots", body, when, _page)


def delete(target: Target, snapshot_id: str, when: dt.datetime) -> Call[str]:
    """Return the call that deletes a snapshot."""
    return _call(target, "DeleteSessionSnapshot", {"SnapshotId": snapshot_id}, when, _id)


def resume(
    target: Target, snapshot_id: str, *, as_new: bool, ttl_s: int | None, when: dt.datetime
) -> Call[str]:
    """Return the call that resumes a snapshot, and returns the SessionId of the session."""
    body: dict[str, Any] = {"SnapshotId": snapshot_id, "CreateNewInstance": as_new}
    if ttl_s is not None:
        body["Ttl"] = ttl_s
    return _call(target, "ResumeSessionFromSnapshot", body, when, _session_id)


def _call(
    target: Target,
    action: str,
    body: Mapping[str, Any],
    when: dt.datetime,
    read: Callable[[Mapping[str, Any]], T],
) -> Call[T]:
    def reader(response: httpx.Response) -> T:
        return read(sandbox.read_action(response))

    whole = {"ToolId": target.sandbox_tool(), **body}
    return Call(sandbox.signed(target, whole, when, action=action), reader)


def _session_id(result: Mapping[str, Any]) -> str:
    return str(result["SessionId"])


def _id(result: Mapping[str, Any]) -> str:
    return str(result["SnapshotId"])


def _page(result: Mapping[str, Any]) -> Page:
    found = tuple(_snapshot(one) for one in result.get("Snapshots") or ())
    return Page(found, str(result.get("NextToken") or ""))


def _snapshot(shown: Mapping[str, Any]) -> SessionSnapshot:
    """Read a snapshot; only its id is required, because no platform is known to send the rest."""
    return SessionSnapshot(
        id=str(shown["SnapshotId"]),
        status=str(shown.get("Status") or ""),
        session_id=str(shown.get("SessionId") or ""),
        user_session_id=str(shown.get("UserSessionId") or ""),
        created_at=str(shown.get("CreatedAt") or ""),
        reason=str(shown.get("Reason") or ""),
    )
