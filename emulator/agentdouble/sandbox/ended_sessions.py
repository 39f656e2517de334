"""The sessions that have ended, and the records of all in the store."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentdouble.errors import UnknownSessionError
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_log import SessionLog
from agentdouble.state import Change, Record, Store

KIND = "session"
REMEMBERED = 10_000
LOGS_KEPT = 100
RESTARTED = "the double was restarted"
EXPIRED_AT = "expired at"  # reasons that begin with it are those of sessions whose time ran out


@dataclass(frozen=True)
class EndedSession:
    """A session that has ended: when, why, and after how many executions.

    ``log`` is None when the log is no longer kept.
    """

    id: str
    key: InstanceKey
    at: dt.datetime
    reason: str
    executions: int
    created_at: dt.datetime
    metadata: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    log: SessionLog | None = field(default=None, compare=False, repr=False)

    @property
    def dated_reason(self) -> str:
        """The reason of the end, with its time unless the reason has the time already."""
        when = f"{self.at:%Y-%m-%dT%H:%M:%SZ}"
        return self.reason if when in self.reason else f"{self.reason}, at {when}"

    @property
    def has_expired(self) -> bool:
        """Whether its time ran out."""
        return self.reason.startswith(EXPIRED_AT)

    def to_record(self) -> Record:
        """Return the session and its end as JSON-ready data."""
        return {
            **_creation(self),
            "at": self.at.isoformat(),
            "reason": self.reason,
            "executions": self.executions,
        }

    @classmethod
    def of(cls, id_: str, record: Record, now: dt.datetime) -> EndedSession:
        """Return the session of a record; without an end, a restart of the double ended it."""
        at = record.get("at")
        return cls(
            id=id_,
            key=InstanceKey(record["tool_id"], record["user_session_id"]),
            at=now if at is None else dt.datetime.fromisoformat(at),
            reason=record.get("reason", RESTARTED),
            executions=record.get("executions", 0),
            created_at=dt.datetime.fromisoformat(record["created_at"]),
            metadata=record.get("metadata", {}),
        )


def ended_session(session: SandboxSession, reason: str, at: dt.datetime) -> EndedSession:
    """Return the end of a session."""
    return EndedSession(
        id=session.id,
        key=session.key,
        at=at,
        reason=reason,
        executions=session.executions,
        created_at=session.created_at,
        metadata=session.metadata,
        log=session.log,
    )


class EndedSessions:
    """The sessions that have ended, oldest first, and the records of all in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended: OrderedDict[str, EndedSession] = OrderedDict()
        self._latest: dict[InstanceKey, str] = {}
        self._with_log: deque[str] = deque()

    async def load(self, now: dt.datetime) -> None:
        """Load the records of the store; sessions that lived then ended with that process."""
        records = await self._store.load(KIND)
        sessions = [EndedSession.of(id_, record, now) for id_, record in records.items()]
        for ended in sorted(sessions, key=lambda session: session.at):
            if "at" in records[ended.id]:
                self._take_up(ended)
            else:
                self._remember(ended)
        await self._store.saved()

    def all(self) -> tuple[EndedSession, ...]:
        """Return the remembered sessions, oldest first."""
        return tuple(self._ended.values())

    def find(self, session_id: str) -> EndedSession:
        """Return an ended session; raise UnknownSessionError if it is not remembered."""
        ended = self._ended.get(session_id)
        if ended is None:
            raise UnknownSessionError(session_id)
        return ended

    def latest(self, key: InstanceKey) -> EndedSession | None:
        """Return the last ended session of a session, or None if none is remembered."""
        id_ = self._latest.get(key)
        return None if id_ is None else self._ended[id_]

    async def begin(self, session: SandboxSession) -> None:
        """Record a living session; raise StateError if that fails."""
        await self._store.write(Change(KIND, session.id, _creation(session)))
        self._forget(session.id)  # it had ended before, if it lives again from its snapshot

    def _forget(self, session_id: str) -> None:
        ended = self._ended.pop(session_id, None)
        if ended is not None and self._latest.get(ended.key) == session_id:
            del self._latest[ended.key]

    def end(self, session: SandboxSession, reason: str, at: dt.datetime) -> EndedSession:
        """Remember a session that has ended, even if the write fails; return its end."""
        self._remember(ended := ended_session(session, reason, at))
        return ended

    async def clear(self) -> None:
        """Forget everything."""
        await self._store.write(*(Change(KIND, id_) for id_ in self._ended))
        self._ended, self._latest = OrderedDict(), {}
        self._with_log.clear()

    def _remember(self, ended: EndedSession) -> None:
        self._store.put(Change(KIND, ended.id, ended.to_record()))
        self._take_up(ended)
        self._with_log.append(ended.id)
        if len(self._with_log) > LOGS_KEPT:
            id_ = self._with_log.popleft()
            if id_ in self._ended and id_ not in self._with_log:
                self._ended[id_] = replace(self._ended[id_], log=None)

    def _take_up(self, ended: EndedSession) -> None:
        self._ended[ended.id] = ended
        self._latest[ended.key] = ended.id
        if len(self._ended) > REMEMBERED:
            id_, oldest = self._ended.popitem(last=False)
            if self._latest.get(oldest.key) == id_:
                del self._latest[oldest.key]
            self._store.put(Change(KIND, id_))


def _creation(session: SandboxSession | EndedSession) -> dict[str, object]:
    return {
        "tool_id": session.key.tool_id,
        "user_session_id": session.key.user_session_id,
        "created_at": session.created_at.isoformat(),
        "metadata": dict(session.metadata),
    }
