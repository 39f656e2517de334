"""What is remembered of a session instance that has ended, and what is kept of it on disk."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass, field, replace

from agentdouble.errors import UnknownSessionError
from agentdouble.sandbox.instance import Instance, InstanceKey
from agentdouble.sandbox.session_log import SessionLog
from agentdouble.state import Record, Store

KIND = "session"
REMEMBERED = 10_000
LOGS_KEPT = 100
RESTARTED = "the double was restarted"


@dataclass(frozen=True)
class Ended:
    """When an instance ended, why, and after how many executions; ``log`` while it is kept."""

    id: str
    key: InstanceKey
    at: dt.datetime
    reason: str
    executions: int
    created_at: dt.datetime
    log: SessionLog | None = field(default=None, compare=False, repr=False)

    @property
    def why(self) -> str:
        """Why it ended, and when, unless the reason says that already."""
        when = f"{self.at:%Y-%m-%dT%H:%M:%SZ}"
        return self.reason if when in self.reason else f"{self.reason}, at {when}"

    def to_record(self) -> Record:
        """Return it as JSON-ready data, with its end."""
        return {
            **_made(self.key, self.created_at),
            "at": self.at.isoformat(),
            "reason": self.reason,
            "executions": self.executions,
        }

    @classmethod
    def of(cls, id_: str, record: Record, now: dt.datetime) -> Ended:
        """Return what a record tells; one without an end was broken off by a restart."""
        at = record.get("at")
        return cls(
            id=id_,
            key=InstanceKey(record["tool_id"], record["user_session_id"]),
            at=now if at is None else dt.datetime.fromisoformat(at),
            reason=record.get("reason", RESTARTED),
            executions=record.get("executions", 0),
            created_at=dt.datetime.fromisoformat(record["created_at"]),
        )


class History:
    """The session instances that have ended, oldest first, and the records of all in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended: dict[str, Ended] = {}

    async def load(self, now: dt.datetime) -> None:
        """Take up what the store has kept; what lived then has ended with that process."""
        kept = await self._store.load(KIND)
        found = [Ended.of(id_, record, now) for id_, record in kept.items()]
        for ended in sorted(found, key=lambda one: one.at):
            if "at" in kept[ended.id]:
                self._ended[ended.id] = ended
            else:
                self._keep(ended)
        await self._store.saved()

    def all(self) -> tuple[Ended, ...]:
        """Return what is remembered, oldest first."""
        return tuple(self._ended.values())

    def find(self, session_id: str) -> Ended:
        """Return what is remembered of an instance; raise UnknownSessionError."""
        ended = self._ended.get(session_id)
        if ended is None:
            raise UnknownSessionError(session_id)
        return ended

    def latest(self, key: InstanceKey) -> Ended | None:
        """Return the last instance that a session had, if it is remembered."""
        return next((one for one in reversed(self._ended.values()) if one.key == key), None)

    def begin(self, instance: Instance) -> None:
        """Record an instance that lives."""
        self._store.put(KIND, instance.id, _made(instance.key, instance.created_at))

    def end(self, instance: Instance, reason: str, at: dt.datetime) -> None:
        """Remember an instance that has ended."""
        self._keep(
            Ended(
                id=instance.id,
                key=instance.key,
                at=at,
                reason=reason,
                executions=instance.executions,
                created_at=instance.created_at,
                log=instance.log,
            )
        )

    def clear(self) -> None:
        """Forget everything."""
        for id_ in self._ended:
            self._store.delete(KIND, id_)
        self._ended.clear()

    def _keep(self, ended: Ended) -> None:
        self._ended[ended.id] = ended
        self._store.put(KIND, ended.id, ended.to_record())
        for id_ in list(itertools.islice(reversed(self._ended), LOGS_KEPT, LOGS_KEPT + 1)):
            self._ended[id_] = replace(self._ended[id_], log=None)
        if len(self._ended) > REMEMBERED:
            oldest = next(iter(self._ended))
            del self._ended[oldest]
            self._store.delete(KIND, oldest)


def _made(key: InstanceKey, created_at: dt.datetime) -> dict[str, object]:
    return {
        "tool_id": key.tool_id,
        "user_session_id": key.user_session_id,
        "created_at": created_at.isoformat(),
    }
