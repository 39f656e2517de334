"""Sessions that outlive the process: answered from memory, kept in the state store.

What one method changes is queued in the store at once, and written in one transaction before the
method returns: a kill finds each event there as a whole or not at all, and none that was shown is
lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentdouble.api_server import state
from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.records import SessionKey, StoredEvent
from agentdouble.state import Store

_SESSION = "api-session"
_EVENT = "api-event"
_USER = "api-user"
_APP = "api-app"


class KeptSessions(MemorySessions):
    """A SessionStore in memory whose every change is kept in the state store."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    async def restore(self) -> None:
        """Take up what was kept."""
        for id_, record in (await self._store.load(_APP)).items():
            self._apps[id_] = dict(record)
        for id_, record in (await self._store.load(_USER)).items():
            app, user = json.loads(id_)
            self._users[app, user] = dict(record)
        for id_, record in (await self._store.load(_SESSION)).items():
            self._put_back(SessionKey(*json.loads(id_)), record["state"], record["last_update"])
        events = await self._store.load(_EVENT)
        for record in sorted(events.values(), key=lambda one: one["n"]):
            session = self._find(SessionKey(*record["session"]))
            if session is not None:
                session.events.append(record["json"].encode("utf-8"))

    async def create(
        self, key: SessionKey, initial: Mapping[str, Any], events: Sequence[StoredEvent], now: float
    ) -> bool:
        """Keep a new session with its first events; return False if the id is taken."""
        if not await super().create(key, initial, events, now):
            return False
        scopes = [initial, *(event.state_delta for event in events)]
        self._keep(key, events, scopes)
        await self._store.saved()
        return True

    async def append(self, key: SessionKey, events: Sequence[StoredEvent]) -> bool:
        """Keep events and what they do to the state; return False if there is no such session."""
        if not await super().append(key, events):
            return False
        self._keep(key, events, [event.state_delta for event in events])
        await self._store.saved()
        return True

    async def delete(self, key: SessionKey) -> bool:
        """Forget a session and its events; return False if there was none."""
        session = self._find(key)
        if session is None or not await super().delete(key):
            return False
        self._forget(key, len(session.events))
        await self._store.saved()
        return True

    async def clear(self) -> None:
        """Forget everything."""
        for (app, user), sessions in self._sessions.items():
            for id_, session in sessions.items():
                self._forget(SessionKey(app, user, id_), len(session.events))
        for owner in self._users:
            self._store.delete(_USER, json.dumps(owner))
        for app in self._apps:
            self._store.delete(_APP, app)
        await super().clear()
        await self._store.saved()

    def _keep(
        self,
        key: SessionKey,
        events: Sequence[StoredEvent],
        deltas: Sequence[Mapping[str, Any]],
    ) -> None:
        """Queue a session, its newest events, and the scopes that changed."""
        session = self._find(key)
        assert session is not None
        record = {"state": session.state, "last_update": session.last_update}
        self._store.put(_SESSION, json.dumps(key), record)
        first = len(session.events) - len(events)
        for number, event in enumerate(events, first):
            text = event.json.decode("utf-8")
            self._store.put(
                _EVENT, _event_id(key, number), {"session": key, "n": number, "json": text}
            )
        changed = [state.split(delta) for delta in deltas]
        if any(scoped.app for scoped in changed):
            self._store.put(_APP, key.app, self._apps[key.app])
        if any(scoped.user for scoped in changed):
            owner = (key.app, key.user)
            self._store.put(_USER, json.dumps(owner), self._users[owner])

    def _forget(self, key: SessionKey, events: int) -> None:
        self._store.delete(_SESSION, json.dumps(key))
        for number in range(events):
            self._store.delete(_EVENT, _event_id(key, number))


def _event_id(key: SessionKey, number: int) -> str:
    return json.dumps([*key, number])
