"""Probes of session snapshots: what they hold, which are kept, and what resuming one does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doublecheck.probes.probe import NotSettledError, probe
from doublecheck.probes.probing import Answer, Probing, printed, unlike
from doublecheck.probes.sandbox import MOMENT_S, end_of

_FAILED = 500  # an HTTP status from which on an answer is no refusal


@probe("U-SNAPSHOT-ENABLED", "sandbox", "control_plane", writes=True)
def enabled(at: Probing) -> str:
    """Take a snapshot of a session of a tool that was created without EnableSnapshot."""
    made = at.act("CreateTool", Name=f"dc-{at.token[:12]}", ToolType="CodeEnv").ok()
    tool = {"ToolId": made["ToolId"]}
    at.finally_(lambda: at.act("DeleteTool", **tool))
    session = at.act("CreateSession", **tool).ok()["SessionId"]
    answer = at.act("CreateSessionSnapshot", **tool, SessionId=session)
    return "required" if answer.error else "any"


@probe("U-SNAPSHOT-CARRIES", "sandbox", "control_plane", writes=True)
def carries(at: Probing) -> str:
    """Resume a session and look for a variable and a file."""
    session = at.begin()
    at.run("mark = 1\nopen('mark', 'w').close()").ok()
    _resume(at, _take(at, session)).ok()
    found = printed(at.run("import os; print('mark' in globals(), os.path.exists('mark'))"))
    answers = {"True True": "memory", "False True": "files"}
    if found not in answers:
        raise unlike("variable and file are there", found)
    return answers[found]


@probe("U-SNAPSHOT-STATUS", "sandbox", "control_plane", writes=True)
def status(at: Probing) -> str:
    """Read the Status of a snapshot's creation."""
    found = str(_create(at, at.begin()).ok().get("Status"))
    if found not in ("Ready", "Creating"):
        raise unlike("its Status is", found)
    return found.lower()


@probe("U-SNAPSHOT-RETENTION", "sandbox", "control_plane", writes=True)
def retention(at: Probing) -> str:
    """Take two snapshots with a RetentionCount of one."""
    session = at.begin()
    _create(at, session, RetentionCount=1).ok()
    if _create(at, session, RetentionCount=1).error:
        return "refused"
    if len(_listed(at)) != 1:
        raise unlike("snapshots are kept:", len(_listed(at)))
    return "newest"


@probe("U-SNAPSHOT-ORDER", "sandbox", "control_plane", writes=True)
def order(at: Probing) -> str:
    """List two snapshots."""
    session = at.begin()
    first = _take(at, session)
    at.patience.wait(MOMENT_S)
    second = _take(at, session)
    answers = {(second, first): "newest-first", (first, second): "oldest-first"}
    listed = _listed(at)
    if listed not in answers:
        raise unlike("the list has", listed)
    return answers[listed]


@probe("U-SNAPSHOT-LIVING", "sandbox", "control_plane", writes=True)
def of_a_living_session(at: Probing) -> str:
    """Return a living session to a snapshot."""
    session = at.begin()
    answer = _resume(at, _take(at, session))
    if answer.status < _FAILED and answer.error:
        return "refused"
    if answer.ok().get("SessionId") != session:
        raise NotSettledError("it goes on with another SessionId")
    return "replaced"


@probe("U-SNAPSHOT-ENDED", "sandbox", "control_plane", writes=True)
def of_an_ended_session(at: Probing) -> str:
    """Resume a session that has been deleted."""
    session = at.begin()
    snapshot = _take(at, session)
    at.act("DeleteSession", ToolId=at.tool_id, SessionId=session).ok()
    answer = _resume(at, snapshot)
    if answer.status < _FAILED and answer.error:
        return "refused"
    if answer.ok().get("SessionId") == session:
        raise NotSettledError("it has its SessionId again")
    return "new-session-id"


@probe("U-SNAPSHOT-TTL", "sandbox", "control_plane", writes=True)
def ttl(at: Probing) -> str:
    """Return a living session to a snapshot and look whether its end has moved."""
    session = at.begin()
    snapshot, before = _take(at, session), end_of(at, session)
    at.patience.wait(MOMENT_S)
    _resume(at, snapshot).ok()
    return "anew" if end_of(at, session) != before else "kept"


def _create(at: Probing, session: str, **fields: Any) -> Answer:
    """Take a snapshot that is deleted at the end."""
    answer = at.act("CreateSessionSnapshot", ToolId=at.tool_id, SessionId=session, **fields)
    if not answer.error:
        one = {"ToolId": at.tool_id, "SnapshotId": answer.result.get("SnapshotId")}
        at.finally_(lambda: at.act("DeleteSessionSnapshot", **one))
    return answer


def _take(at: Probing, session: str) -> str:
    return str(_create(at, session).ok()["SnapshotId"])


def _resume(at: Probing, snapshot: str) -> Answer:
    """Resume a snapshot in place; a session of its own is ended at the end."""
    one: Mapping[str, Any] = {"ToolId": at.tool_id, "SnapshotId": snapshot}
    answer = at.act("ResumeSessionFromSnapshot", **one, CreateNewInstance=False)
    session = answer.result.get("SessionId")
    if session:
        at.finally_(lambda: at.act("DeleteSession", ToolId=at.tool_id, SessionId=session))
    return answer


def _listed(at: Probing) -> tuple[str, ...]:
    query = {"ToolId": at.tool_id, "UserSessionId": at.session}
    listed = at.act("ListSessionSnapshots", **query).ok()["Snapshots"]
    return tuple(one["SnapshotId"] for one in listed)
