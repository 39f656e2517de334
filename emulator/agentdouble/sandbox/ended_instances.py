"""The session instances that have ended, the records of all in the store, and the events about them."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.errors import UnknownSessionError
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.session_process import InstanceKey, SessionLog
from agentdouble.state import Change, Record, Store

Happened = Literal["begun", "busy", "idle", "paused", "resumed", "ttl"]

KIND = "session"
REMEMBERED = 10_000
LOGS_KEPT = 100
RESTARTED = "the double was restarted"


@dataclass(frozen=True)
class EndedInstance:
    """An instance that has ended: when, why, and after how many executions.

    ``log`` is None when the log is no longer kept.
    """

    id: str
    key: InstanceKey
    at: dt.datetime
    reason: str
    executions: int
    created_at: dt.datetime
    log: SessionLog | None = field(default=None, compare=False, repr=False)

    @property
    def dated_reason(self) -> str:
        """The reason of the end, with its time unless the reason has the time already."""
        when = f"{self.at:%Y-%m-%dT%H:%M:%SZ}"
        return self.reason if when in self.reason else f"{self.reason}, at {when}"

    def to_record(self) -> Record:
        """Return the instance and its end as JSON-ready data."""
        return {
            **_creation(self.key, self.created_at),
            "at": self.at.isoformat(),
            "reason": self.reason,
            "executions": self.executions,
        }

    @classmethod
    def of(cls, id_: str, record: Record, now: dt.datetime) -> EndedInstance:
        """Return the instance of a record; without an end, a restart of the double ended it."""
        at = record.get("at")
        return cls(
            id=id_,
            key=InstanceKey(record["tool_id"], record["user_session_id"]),
            at=now if at is None else dt.datetime.fromisoformat(at),
            reason=record.get("reason", RESTARTED),
            executions=record.get("executions", 0),
            created_at=dt.datetime.fromisoformat(record["created_at"]),
        )


def ended_instance(instance: Instance, reason: str, at: dt.datetime) -> EndedInstance:
    """Return the end of an instance."""
    return EndedInstance(
        id=instance.id,
        key=instance.key,
        at=at,
        reason=reason,
        executions=instance.executions,
        created_at=instance.created_at,
        log=instance.log,
    )


class EndedInstances:
    """The session instances that have ended, oldest first, and the records of all in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended: OrderedDict[str, EndedInstance] = OrderedDict()
        self._latest: dict[InstanceKey, str] = {}
        self._with_log: deque[str] = deque()

    async def load(self, now: dt.datetime) -> None:
        """Load the records of the store; instances that lived then ended with that process."""
        records = await self._store.load(KIND)
        instances = [EndedInstance.of(id_, record, now) for id_, record in records.items()]
        for ended in sorted(instances, key=lambda instance: instance.at):
            if "at" in records[ended.id]:
                self._take_up(ended)
            else:
                self._remember(ended)
        await self._store.saved()

    def all(self) -> tuple[EndedInstance, ...]:
        """Return the remembered instances, oldest first."""
        return tuple(self._ended.values())

    def find(self, session_id: str) -> EndedInstance:
        """Return an ended instance; raise UnknownSessionError if it is not remembered."""
        ended = self._ended.get(session_id)
        if ended is None:
            raise UnknownSessionError(session_id)
        return ended

    def latest(self, key: InstanceKey) -> EndedInstance | None:
        """Return the last ended instance of a session, or None if none is remembered."""
        id_ = self._latest.get(key)
        return None if id_ is None else self._ended[id_]

    async def begin(self, instance: Instance) -> None:
        """Record a living instance; raise StateError if that fails."""
        record = _creation(instance.key, instance.created_at)
        await self._store.write(Change(KIND, instance.id, record))

    def end(self, instance: Instance, reason: str, at: dt.datetime) -> EndedInstance:
        """Remember an instance that has ended, even if the write fails; return its end."""
        self._remember(ended := ended_instance(instance, reason, at))
        return ended

    async def clear(self) -> None:
        """Forget everything."""
        await self._store.write(*(Change(KIND, id_) for id_ in self._ended))
        self._ended, self._latest = OrderedDict(), {}
        self._with_log.clear()

    def _remember(self, ended: EndedInstance) -> None:
        self._store.put(Change(KIND, ended.id, ended.to_record()))
        self._take_up(ended)
        self._with_log.append(ended.id)
        if len(self._with_log) > LOGS_KEPT:
            id_ = self._with_log.popleft()
            self._ended[id_] = replace(self._ended[id_], log=None)

    def _take_up(self, ended: EndedInstance) -> None:
        self._ended[ended.id] = ended
        self._latest[ended.key] = ended.id
        if len(self._ended) > REMEMBERED:
            id_, oldest = self._ended.popitem(last=False)
            if self._latest[oldest.key] == id_:
                del self._latest[oldest.key]
            self._store.put(Change(KIND, id_))


def _creation(key: InstanceKey, created_at: dt.datetime) -> dict[str, object]:
    return {
        "tool_id": key.tool_id,
        "user_session_id": key.user_session_id,
        "created_at": created_at.isoformat(),
    }


def living(instance: Instance, clock: Clock) -> dict[str, Any]:
    """Return how a living instance is shown."""
    used = instance.used
    return {
        "SessionId": instance.id,
        "UserSessionId": instance.key.user_session_id,
        "ToolId": instance.key.tool_id,
        **({} if instance.node is None else {"node": instance.node}),
        "state": instance.lifetime.state,
        "busy": instance.busy,
        "created_at": instance.created_at.isoformat(),
        "deadline": instance.lifetime.deadline.isoformat(),
        "remaining_s": (instance.lifetime.deadline - clock.now()).total_seconds(),
        "executions": instance.executions,
        "pids": list(instance.pids),
        "home": None if instance.home is None else str(instance.home),
        "memory_bytes": None if used is None else used.memory,
        "cpu_s": None if used is None else used.cpu_s,
    }


def ended(instance: EndedInstance) -> dict[str, Any]:
    """Return how an instance that has ended is shown."""
    return {
        "SessionId": instance.id,
        "UserSessionId": instance.key.user_session_id,
        "ToolId": instance.key.tool_id,
        "state": "destroyed",
        "ended_at": instance.at.isoformat(),
        "reason": instance.reason,
        "executions": instance.executions,
    }


class SessionEvents:
    """Publishes what happens to session instances, if somebody listens."""

    def __init__(self, bus: EventBus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    def publish(self, instance: Instance, happened: Happened) -> None:
        """Publish what happened to a living instance."""
        if self._bus.watched and instance.end_reason is None:  # the end is the last event
            self._bus.publish(
                "session", instance.id, happened, lambda: living(instance, self._clock)
            )

    def ended(self, instance: EndedInstance) -> None:
        """Publish the end of an instance."""
        if self._bus.watched:
            self._bus.publish("session", instance.id, "ended", lambda: ended(instance))
