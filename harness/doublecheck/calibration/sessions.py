"""Probes of the sandbox: the results of code, and the lifetime of a session."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any

from doublecheck.calibration.probe import probe
from doublecheck.calibration.probing import (
    TTL_S,
    WITHIN_S,
    ActionAnswer,
    NotSettledError,
    Probing,
    answered_meanwhile,
    background,
    inner,
    one_of,
    printed,
    unlike,
)

MOMENT_S = 3  # more than one second, because a timestamp may be truncated to seconds
_SHORT_S = 60
_BETWEEN_S = 5  # between two questions, as a published client waits
_ASKS = 7
_ASKS_FOR_SNAPSHOT = 120  # ten minutes, as long as published clients wait
_PENDING = ("creating", "pending", "processing")
_TERMINATING = "InvalidSnapshot.InstanceTerminating"
_LONG_S = 5 * TTL_S


@probe("U-EXEC-SUCCESS", "sandbox", writes=True)
def success(at: Probing) -> str:
    """Run code that raises."""
    return "true" if inner(at.run("1/0")).get("success") is True else "false"


@probe("U-EXEC-TIMEOUT", "sandbox", writes=True)
def timeout(at: Probing) -> str:
    """Run endless code with a timeout, and check whether the context is kept."""
    at.run("mark = 1").ok()
    ended = inner(at.run("while True: pass", timeout_s=1))
    if ended.get("success"):
        raise NotSettledError("endless code succeeded")
    is_kept = printed(at.run("print('mark' in globals())")) == "True"
    return "interrupted" if is_kept else "instance-lost"


@probe("U-EXEC-CONCURRENCY", "sandbox", writes=True)
def at_once(at: Probing) -> str:
    """Run code while other code waits to be released."""
    at.begin()
    gated = _HeldCode(at, WITHIN_S)
    first = background(lambda: at.run(gated.code, timeout_s=gated.timeout_s))
    gated.wait_until_begun()
    second = background(lambda: at.run("1"))
    # a refusal comes at once
    answered_meanwhile(second, lambda: at.run("true", "bash", ttl_s=None))
    gated.release()
    if first.result(WITHIN_S).error:
        raise NotSettledError(f"the first call is refused: {first.result().error}")
    return "refused" if second.result(WITHIN_S).error else "queued"


@probe("U-EXECBASH-STATE", "sandbox", writes=True)
def bash_state(at: Probing) -> str:
    """Set a variable with one command and print it with the next."""
    at.run("mark=kept", "bash").ok()
    output = printed(at.run("echo value:$mark", "bash"))
    return one_of({"value:kept": "kept", "value:": "fresh"}, output, "the command prints")


@probe("U-KERNEL-NAMES", "sandbox", writes=True)
def kernel_names(at: Probing) -> str:
    """Run code in ``python``, which is ``python3`` if aliases are accepted."""
    at.run("0").ok()
    return "two-names" if at.run("0", "python").error else "aliases"


@probe("U-TTL-EXTENDS", "sandbox", "control_plane", writes=True)
def extends(at: Probing) -> str:
    """Use a session and check whether its expiry has moved."""
    session = at.begin()
    before = end_of(at, session)
    at.patience.wait(MOMENT_S)
    at.run("1", ttl_s=None).ok()
    return "sliding" if end_of(at, session) > before else "absolute"


@probe("U-TTL-REPEATED", "sandbox", "control_plane", writes=True)
def repeated(at: Probing) -> str:
    """Send a longer Ttl for an active session, and check whether its expiry has moved that far."""
    session = at.begin()
    before = end_of(at, session)
    at.run("1", ttl_s=_LONG_S).ok()
    moved = end_of(at, session) - before
    return "renews" if moved > dt.timedelta(seconds=(_LONG_S - TTL_S) / 2) else "ignored"


@probe("U-TTL-PAUSED", "sandbox", "control_plane", writes=True)
def paused(at: Probing) -> str:
    """Pause a session for a moment and check whether its expiry has moved."""
    session = at.begin()
    before = end_of(at, session)
    target = {"ToolId": at.tool_id, "SessionId": session}
    at.act("PauseSession", **target).ok()
    at.patience.wait(MOMENT_S)
    at.act("ResumeSession", **target).ok()
    return "stops" if end_of(at, session) > before else "runs"


@probe("U-TTL-DURING", "sandbox", writes=True, slow_s=_SHORT_S + 10)
def during(at: Probing) -> str:
    """Run code that lasts longer than the session."""
    gated = _HeldCode(at, at.patience.real_s(_SHORT_S + 5) + WITHIN_S)
    at.run("0", ttl_s=_SHORT_S).ok()
    running = background(lambda: at.run(gated.code, ttl_s=None, timeout_s=gated.timeout_s))
    gated.wait_until_begun()
    at.patience.wait(_SHORT_S + 1)
    gated.release()
    ended = running.result(gated.timeout_s)
    return "finishes" if not ended.error and inner(ended).get("success") else "killed"


@probe("U-TTL-AFTER", "sandbox", writes=True, slow_s=_SHORT_S + 2)
def after(at: Probing) -> str:
    """Make a call after the session's end."""
    first = at.run("0", ttl_s=_SHORT_S).ok()["SessionId"]
    at.patience.wait(_SHORT_S + 2)
    answer = at.run("0", ttl_s=_SHORT_S)
    if answer.error:
        return "error"
    if answer.ok()["SessionId"] == first:
        raise NotSettledError(f"the instance still exists after its Ttl of {_SHORT_S} s")
    return "new-instance"


def end_of(at: Probing, session: str) -> dt.datetime:
    """Return when a session expires."""
    return moment(at.act("GetSession", ToolId=at.tool_id, SessionId=session).ok(), "ExpireAt")


def moment(details: Any, field: str) -> dt.datetime:
    """Return a time that a session shows. Raise NotSettledError if it does not show it."""
    try:
        return dt.datetime.fromisoformat(str(details.get(field)).replace("Z", "+00:00"))
    except ValueError:
        raise NotSettledError(f"the session shows no readable {field}") from None


class _HeldCode:
    """Code that waits for a file, at most ``hold_s``; a command in the session creates the file."""

    def __init__(self, at: Probing, hold_s: float) -> None:
        self._at = at
        self._begun, self._go = (f"/tmp/{at.token}.{name}" for name in ("begun", "go"))  # noqa: S108
        self.timeout_s = math.ceil(hold_s) + 5
        self.code = (
            f"import os, time\nopen({self._begun!r}, 'w').close()\n"
            f"end = time.monotonic() + {hold_s}\n"
            f"while not os.path.exists({self._go!r}) and time.monotonic() < end: time.sleep(0.01)"
        )

    def wait_until_begun(self) -> None:
        """Wait until the code runs."""
        self._at.run(f"until [ -e {self._begun} ]; do sleep 0.02; done", "bash", ttl_s=None).ok()

    def release(self) -> None:
        """Let the code end, if it is still running."""
        self._at.run(f"touch {self._go}", "bash", ttl_s=None)


_FAILED = 500  # HTTP statuses from this one on are server errors, not refusals


@probe("U-SNAPSHOT-ENABLED", "sandbox", "control_plane", writes=True)
def enabled(at: Probing) -> str:
    """Take a snapshot of a session of a tool that was created without EnableSnapshot."""
    created = at.act("CreateTool", Name=f"dc-{at.token[:12]}", ToolType="CodeEnv").ok()
    tool = {"ToolId": created["ToolId"]}
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
    output = printed(at.run("import os; print('mark' in globals(), os.path.exists('mark'))"))
    answers = {"True True": "memory", "False True": "files"}
    return one_of(answers, output, "variable and file exist:")


@probe("U-SNAPSHOT-STATUS", "sandbox", "control_plane", writes=True)
def status(at: Probing) -> str:
    """Read the Status of a snapshot's creation."""
    state = _create(at, at.begin()).ok().get("Status")
    return one_of({"Ready": "ready", "Creating": "creating"}, state, "its Status is")


@probe("U-SNAPSHOT-RETENTION", "sandbox", "control_plane", writes=True)
def retention(at: Probing) -> str:
    """Take two snapshots with a RetentionCount of one."""
    session = at.begin()
    _create(at, session, RetentionCount=1).ok()
    if _create(at, session, RetentionCount=1).error:
        return "refused"
    return one_of({1: "newest"}, len(_listed(at)), "snapshots are kept:")


@probe("U-SNAPSHOT-ORDER", "sandbox", "control_plane", writes=True)
def order(at: Probing) -> str:
    """List two snapshots."""
    session = at.begin()
    first = _take(at, session)
    at.patience.wait(MOMENT_S)
    second = _take(at, session)
    answers = {(second, first): "newest-first", (first, second): "oldest-first"}
    return one_of(answers, _listed(at), "the list has")


@probe("U-SNAPSHOT-LIVING", "sandbox", "control_plane", writes=True)
def of_a_living_session(at: Probing) -> str:
    """Resume a snapshot of a session that is still active."""
    session = at.begin()
    answer = _resume(at, _take(at, session))
    if answer.status < _FAILED and answer.error:
        return "refused"
    if answer.ok().get("SessionId") != session:
        raise NotSettledError("the session got another SessionId")
    return "replaced"


@probe("U-SNAPSHOT-DELETED", "sandbox", "control_plane", writes=True)
def of_a_deleted_session(at: Probing) -> str:
    """List the snapshots of a session that has been deleted."""
    session = at.begin()
    _take(at, session)
    at.act("DeleteSession", ToolId=at.tool_id, SessionId=session).ok()
    return "kept" if _listed(at) else "deleted"


@probe("U-SNAPSHOT-TERMINATING", "sandbox", "control_plane", writes=True)
def terminating(at: Probing) -> str:
    """Resume a session at once after its deletion, and again later if that is refused."""
    session = at.begin()
    snapshot = _take(at, session)
    at.act("DeleteSession", ToolId=at.tool_id, SessionId=session).ok()
    answer = _resume(at, snapshot)
    if not answer.error:
        return "resumed"
    if answer.error.get("Code") != _TERMINATING or _resumed_later(at, snapshot).error:
        raise unlike("a session that was just deleted is not resumed", answer.error)
    return "refused"


@probe("U-SNAPSHOT-ENDED", "sandbox", "control_plane", writes=True)
def of_an_ended_session(at: Probing) -> str:
    """Resume a session that has been deleted."""
    session = at.begin()
    snapshot = _take(at, session)
    at.act("DeleteSession", ToolId=at.tool_id, SessionId=session).ok()
    if not _listed(at):
        raise NotSettledError("its snapshot was deleted with it")
    answer = _resumed_later(at, snapshot)
    if answer.status < _FAILED and answer.error:
        return "refused"
    is_same = answer.ok().get("SessionId") == session
    return "same-session-id" if is_same else "new-session-id"


def _resumed_later(at: Probing, snapshot: str) -> ActionAnswer:
    """Resume a snapshot; ask again for half a minute while its session is said to be ending."""
    for _ in range(_ASKS):
        answer = _resume(at, snapshot)
        if answer.error.get("Code") != _TERMINATING:
            break
        at.patience.wait(_BETWEEN_S)
    return answer


@probe("U-SNAPSHOT-NEW-INSTANCE", "sandbox", "control_plane", writes=True)
def new_instance(at: Probing) -> str:
    """Look at the name of a copy's user session."""
    answer = _resume(at, _take(at, at.begin()), CreateNewInstance=True).ok()
    copy = {"ToolId": at.tool_id, "SessionId": answer["SessionId"]}
    name = at.act("GetSession", **copy).ok().get("UserSessionId")
    return "same" if name == at.session else "new"


@probe("U-SNAPSHOT-AUTOMATIC", "sandbox", "control_plane", writes=True, slow_s=_SHORT_S + 2)
def automatic(at: Probing) -> str:
    """Let a session expire, and look for a snapshot of it."""
    at.run("0", ttl_s=_SHORT_S).ok()
    at.patience.wait(_SHORT_S + 2)
    for _ in range(_ASKS):
        if snapshots := _listed(at):
            for snapshot in snapshots:
                _delete_at_the_end(at, snapshot)
            return "at-end"
        at.patience.wait(_BETWEEN_S)
    return "never"


@probe("U-SNAPSHOT-TTL", "sandbox", "control_plane", writes=True)
def ttl(at: Probing) -> str:
    """Resume a snapshot of an active session, and check whether its expiry has moved."""
    session = at.begin()
    snapshot, before = _take(at, session), end_of(at, session)
    at.patience.wait(MOMENT_S)
    _resume(at, snapshot).ok()
    return "anew" if end_of(at, session) != before else "kept"


def _create(at: Probing, session: str, **fields: Any) -> ActionAnswer:
    """Take a snapshot that is deleted at the end."""
    answer = at.act("CreateSessionSnapshot", ToolId=at.tool_id, SessionId=session, **fields)
    if not answer.error:
        _delete_at_the_end(at, str(answer.result.get("SnapshotId")))
    return answer


def _delete_at_the_end(at: Probing, snapshot: str) -> None:
    target = {"ToolId": at.tool_id, "SnapshotId": snapshot}
    at.finally_(lambda: at.act("DeleteSessionSnapshot", **target))


def _take(at: Probing, session: str) -> str:
    """Take a snapshot, wait until the platform has it, and return its id."""
    snapshot = str(_create(at, session).ok()["SnapshotId"])
    target = {"ToolId": at.tool_id, "SnapshotId": snapshot}
    for _ in range(_ASKS_FOR_SNAPSHOT):
        details = at.act("GetSessionSnapshot", **target).ok().get("Snapshot") or {}
        if str(details.get("Status")).lower() not in _PENDING:
            return snapshot
        at.patience.wait(_BETWEEN_S)
    raise NotSettledError(f"the snapshot is not ready after {_ASKS_FOR_SNAPSHOT * _BETWEEN_S} s")


def _resume(at: Probing, snapshot: str, **fields: Any) -> ActionAnswer:
    """Resume a snapshot, in place by default. A session that this begins is ended at the end."""
    target: Mapping[str, Any] = {"ToolId": at.tool_id, "SnapshotId": snapshot}
    answer = at.act("ResumeSessionFromSnapshot", **target, **{"CreateNewInstance": False, **fields})
    session = answer.result.get("SessionId")
    if session:
        at.finally_(lambda: at.act("DeleteSession", ToolId=at.tool_id, SessionId=session))
    return answer


def _listed(at: Probing) -> tuple[str, ...]:
    query = {"ToolId": at.tool_id, "UserSessionId": at.session}
    listed = at.act("ListSessionSnapshots", **query).ok()["Snapshots"]
    return tuple(snapshot["SnapshotId"] for snapshot in listed)
