"""Sessions that outlive the process: read from memory, stored in the state store.

The changes of one method are queued in the store at once and written in one transaction before the
method returns. So after a kill each event is stored completely or not at all, and no event that was
sent is lost. A change that cannot be written is undone; readers of the session wait for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from agentdouble.api_server.stores import (
    MemorySessions,
    Revision,
    SessionKey,
    StoredEvent,
    StoredSession,
    split_scopes,
)
from agentdouble.state import Change, Store, Undo

K = TypeVar("K")

_SESSION = "api-session"
_EVENT = "api-event"
_USER = "api-user"
_APP = "api-app"


class PersistentSessions(MemorySessions):
    """A SessionStore in memory that also writes every change to the state store."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    async def restore(self) -> None:
        """Load the sessions of an earlier process."""
        for id_, record in (await self._store.load(_APP)).items():
            self._apps[id_] = dict(record)
        for id_, record in (await self._store.load(_USER)).items():
            app, user = json.loads(id_)
            self._users[app, user] = dict(record)
        for id_, record in (await self._store.load(_SESSION)).items():
            self._restore_session(
                SessionKey(*json.loads(id_)), record["state"], record["last_update"]
            )
        events = await self._store.load(_EVENT)
        for record in sorted(events.values(), key=lambda one: one["n"]):
            session = self._find(SessionKey(*record["session"]))
            if session is not None:
                private = record.get("private", "")
                session.add(record["json"].encode("utf-8"), private.encode("utf-8"))

    async def read(self, key: SessionKey) -> StoredSession | None:
        """Return a session with its events, or None."""
        await self._store.settled(_name(key))
        return await super().read(key)

    async def head(self, key: SessionKey) -> StoredSession | None:
        """Return a session without its events, or None."""
        await self._store.settled(_name(key))
        return await super().head(key)

    async def create(
        self, key: SessionKey, initial: Mapping[str, Any], events: Sequence[StoredEvent], now: float
    ) -> bool:
        """Store a new session with its first events; return False if the id is taken."""
        await self._store.settled(_name(key))
        deltas = [initial, *(event.state_delta for event in events)]
        undo = self._undo_of(key, deltas)
        if not await super().create(key, initial, events, now):
            return False
        await self._store.write(self._changes(key, events, deltas), undo)
        return True

    async def append(self, key: SessionKey, events: Sequence[StoredEvent]) -> Revision | None:
        """Store events and apply them to the state; return None if there is no such session."""
        deltas = [event.state_delta for event in events]
        undo = self._undo_of(key, deltas)
        revision = await super().append(key, events)
        if revision is not None:
            await self._store.write(self._changes(key, events, deltas), undo)
        return revision

    async def delete(self, key: SessionKey) -> bool:
        """Delete a session and its events; return False if there was none."""
        session, undo = self._find(key), self._undo_of(key, ())
        if session is None or not await super().delete(key):
            return False
        await self._store.write(_forgotten(key, len(session.events)), undo)
        return True

    async def clear(self) -> None:
        """Delete everything."""
        changes = [
            change
            for (app, user), sessions in self._sessions.items()
            for id_, session in sessions.items()
            for change in _forgotten(SessionKey(app, user, id_), len(session.events))
        ]
        changes += [Change(_USER, json.dumps(owner)) for owner in self._users]
        changes += [Change(_APP, app) for app in self._apps]
        before = self._sessions, self._users, self._apps

        def undo() -> None:
            sessions, users, apps = before
            for owner, made in self._sessions.items():  # created in the meantime
                sessions.setdefault(owner, {}).update(made)
            self._sessions, self._users, self._apps = (
                sessions,
                users | self._users,
                apps | self._apps,
            )

        self._sessions, self._users, self._apps = {}, {}, {}
        await self._store.write(changes, undo)

    def _undo_of(self, key: SessionKey, deltas: Sequence[Mapping[str, Any]]) -> Undo:
        """Return a function that restores a session, and the scopes that the deltas change."""
        session, scoped = self._find(key), [split_scopes(delta) for delta in deltas]
        had = None if session is None else session.snapshot()
        shared = [
            _value_of(self._users, key[:2], any(one.user for one in scoped)),
            _value_of(self._apps, key.app, any(one.app for one in scoped)),
        ]

        def undo() -> None:
            sessions = self._sessions.setdefault(key[:2], {})
            if session is None or had is None:
                sessions.pop(key.id, None)
            else:
                session.roll_back(had)
                sessions[key.id] = session
            for put_back in shared:
                put_back()

        return undo

    def _changes(
        self,
        key: SessionKey,
        events: Sequence[StoredEvent],
        deltas: Sequence[Mapping[str, Any]],
    ) -> list[Change]:
        """Return the records of a session, its newest events, and the changed scopes."""
        session = self._find(key)
        assert session is not None
        record = {"state": session.state, "last_update": session.last_update}
        changes = [Change(_SESSION, json.dumps(key), record)]
        first = len(session.events) - len(events)
        for number, event in enumerate(events, first):
            text = event.json.decode("utf-8")
            event_record = {"session": key, "n": number, "json": text}
            if event.private:
                event_record["private"] = event.private.decode("utf-8")
            changes.append(Change(_EVENT, _event_id(key, number), event_record))
        changed = [split_scopes(delta) for delta in deltas]
        if any(scoped.app for scoped in changed):
            changes.append(Change(_APP, key.app, self._apps[key.app]))
        if any(scoped.user for scoped in changed):
            owner = (key.app, key.user)
            changes.append(Change(_USER, json.dumps(owner), self._users[owner]))
        return changes


def _name(key: SessionKey) -> tuple[str, str]:
    return _SESSION, json.dumps(key)


def _value_of(scopes: dict[K, dict[str, Any]], key: K, changes: bool) -> Undo:
    """Return a function that restores the values of a scope, if the scope changes."""
    before = dict(scopes.get(key, {})) if changes else None

    def undo() -> None:
        if before is not None:
            scopes[key] = before

    return undo


def _forgotten(key: SessionKey, events: int) -> list[Change]:
    numbers = range(events)
    return [Change(*_name(key)), *(Change(_EVENT, _event_id(key, n)) for n in numbers)]


def _event_id(key: SessionKey, number: int) -> str:
    return json.dumps([*key, number])
