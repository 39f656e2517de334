"""Sessions and artifacts that outlive the process: read from memory, saved in the state.

A change is written in one transaction, and then made in memory. So after a kill each event is
stored completely or not at all, and no event that was sent is lost. Changes of the same session,
user or application are made one after the other, and others may share a transaction.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from agentdouble.api_server.state_scopes import split_scopes
from agentdouble.api_server.stores import (
    ArtifactKey,
    ArtifactStore,
    Revision,
    SessionKey,
    SessionStore,
    StoredArtifact,
    StoredEvent,
)
from agentdouble.core.keyed_locks import KeyedLocks
from agentdouble.state import Change, Store, unbroken

_SESSION = "api-session"
_EVENT = "api-event"
_USER = "api-user"
_APP = "api-app"
_ARTIFACT = "api-artifact"
_CONTENT = "api-artifact-content"


class PersistentSessions(SessionStore):
    """A store of sessions in memory and in the state."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._locks = KeyedLocks()

    async def restore(self) -> None:
        """Load the sessions of an earlier process."""
        for id_, record in (await self._store.load(_APP)).items():
            self._apps[id_] = dict(record)
        for id_, record in (await self._store.load(_USER)).items():
            app, user = json.loads(id_)
            self._users[app, user] = dict(record)
        for id_, record in (await self._store.load(_SESSION)).items():
            key = SessionKey(*json.loads(id_))
            await super().create(key, record["state"], (), record["last_update"])
        events = await self._store.load(_EVENT)
        for record in sorted(events.values(), key=lambda record: record["n"]):
            session = self._find(SessionKey(*record["session"]))
            if session is not None:
                private = record.get("private", "")
                session.add(record["json"].encode("utf-8"), private.encode("utf-8"))

    async def create(
        self, key: SessionKey, initial: Mapping[str, Any], events: Sequence[StoredEvent], now: float
    ) -> bool:
        """Store a new session with its first events; return False if the id is taken."""

        async def create() -> bool:
            async with self._locks.holding(*_records_of(key, initial, events)):
                if self._find(key) is not None:
                    return False
                await self._store.write(*self._changes(key, {}, 0, events, now, initial))
                return await super(PersistentSessions, self).create(key, initial, events, now)

        return await unbroken(create())

    async def append(self, key: SessionKey, events: Sequence[StoredEvent]) -> Revision | None:
        """Store events and apply them to the state; return None if there is no such session."""

        async def append() -> Revision | None:
            async with self._locks.holding(*_records_of(key, {}, events)):
                session = self._find(key)
                if session is None:
                    return None
                first, now = len(session.events), session.last_update
                await self._store.write(*self._changes(key, session.state, first, events, now))
                return await super(PersistentSessions, self).append(key, events)

        return await unbroken(append())

    async def delete(self, key: SessionKey) -> bool:
        """Delete a session and its events; return False if there was none."""

        async def delete() -> bool:
            async with self._locks.holding(key):
                session = self._find(key)
                if session is None:
                    return False
                await self._store.write(*_removals(key, len(session.events)))
                return await super(PersistentSessions, self).delete(key)

        return await unbroken(delete())

    async def clear(self) -> None:
        """Delete everything that was stored before."""
        await unbroken(self._clear())

    async def _clear(self) -> None:
        keys = sorted(SessionKey(*who, id_) for who, its in self._sessions.items() for id_ in its)
        users, apps = sorted(self._users), sorted(self._apps)
        async with self._locks.holding(*keys, *users, *apps):
            changes = [
                change
                for key in keys
                if (session := self._find(key)) is not None
                for change in _removals(key, len(session.events))
            ]
            changes += [Change(_USER, json.dumps(user)) for user in users]
            changes += [Change(_APP, app) for app in apps]
            await self._store.write(*changes)
            for key in keys:
                await super().delete(key)
            for user in users:
                self._users.pop(user, None)
            for app in apps:
                self._apps.pop(app, None)

    def _changes(
        self,
        key: SessionKey,
        state: Mapping[str, Any],
        first: int,
        events: Sequence[StoredEvent],
        last_update: float,
        initial: Mapping[str, Any] | None = None,
    ) -> list[Change]:
        """Return the records of a session after new events, of these, and of the shared state.

        ``first`` is the number of the first new event.
        """
        delta = dict(initial or {})
        changes = []
        for number, event in enumerate(events, first):
            delta.update(event.state_delta)
            last_update = event.timestamp
            record = {"session": key, "n": number, "json": event.json.decode("utf-8")}
            if event.private:
                record["private"] = event.private.decode("utf-8")
            changes.append(Change(_EVENT, json.dumps([*key, number]), record))
        scoped = split_scopes(delta)
        session = {"state": {**state, **scoped.session}, "last_update": last_update}
        changes.append(Change(_SESSION, json.dumps(key), session))
        if scoped.app:
            changes.append(Change(_APP, key.app, {**self._apps.get(key.app, {}), **scoped.app}))
        if scoped.user:
            user = {**self._users.get((key.app, key.user), {}), **scoped.user}
            changes.append(Change(_USER, json.dumps((key.app, key.user)), user))
        return changes


def _records_of(
    key: SessionKey, initial: Mapping[str, Any], events: Sequence[StoredEvent]
) -> Iterator[Hashable]:
    """Yield the keys of the records that a change touches: session, user, application."""
    yield key
    delta = {name: None for part in (initial, *(it.state_delta for it in events)) for name in part}
    if delta:
        scoped = split_scopes(delta)
        if scoped.user:
            yield key.app, key.user
        if scoped.app:
            yield key.app


def _removals(key: SessionKey, events: int) -> list[Change]:
    names = [json.dumps([*key, number]) for number in range(events)]
    return [Change(_SESSION, json.dumps(key)), *(Change(_EVENT, name) for name in names)]


class PersistentArtifacts(ArtifactStore):
    """A store of artifacts in the state; memory has everything but their contents."""

    scheme = "state"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._locks = KeyedLocks()

    async def restore(self) -> None:
        """Load the artifacts of an earlier process, without their contents."""
        records = (await self._store.load(_ARTIFACT)).values()
        for record in sorted(records, key=lambda record: record["version"]):
            key = ArtifactKey(*record["key"])
            artifact = StoredArtifact(**{**record, "key": key})
            self._artifacts.setdefault(key, []).append(artifact)

    async def save(
        self,
        key: ArtifactKey,
        part: bytes,
        mime_type: str | None,
        custom_metadata: Mapping[str, Any],
        now: float,
    ) -> StoredArtifact:
        """Store a new version and return it without its content."""

        async def save() -> StoredArtifact:
            async with self._locks.holding(key):
                record = {
                    "key": key,
                    "version": len(self._artifacts.get(key, ())),
                    "mime_type": mime_type,
                    "custom_metadata": custom_metadata,
                    "created": now,
                }
                name = _name(key, record["version"])
                content = {"json": part.decode("utf-8")}
                await self._store.write(
                    Change(_ARTIFACT, name, record), Change(_CONTENT, name, content)
                )
                return await super(PersistentArtifacts, self).save(
                    key, b"", mime_type, custom_metadata, now
                )

        return await unbroken(save())

    async def load(self, key: ArtifactKey, version: int | None) -> StoredArtifact | None:
        """Return a version with its content, by default the newest, or None if there is none."""
        artifact = await super().load(key, version)
        if artifact is None:
            return None
        content = await self._store.read(_CONTENT, _name(key, artifact.version))
        if content is None:  # it was deleted meanwhile
            return None
        return dataclasses.replace(artifact, json=content["json"].encode("utf-8"))

    async def delete(self, key: ArtifactKey) -> None:
        """Delete every version."""
        await unbroken(self._delete([key]))

    async def clear(self) -> None:
        """Delete everything."""
        await unbroken(self._delete(list(self._artifacts)))

    async def _delete(self, keys: Sequence[ArtifactKey]) -> None:
        async with self._locks.holding(*sorted(keys)):
            names = [
                _name(key, artifact.version)
                for key in keys
                for artifact in self._artifacts.get(key, ())
            ]
            kinds = (_ARTIFACT, _CONTENT)
            await self._store.write(*(Change(kind, name) for name in names for kind in kinds))
            for key in keys:
                await super().delete(key)


def _name(key: ArtifactKey, version: object) -> str:
    return json.dumps([*key, version])
