"""The stores of sessions and artifacts in memory, and their data types."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentdouble.api_server.state_scopes import ScopedState, merge_scopes, split_scopes


class SessionKey(NamedTuple):
    """The key of a session; ids are unique among one user's sessions of one application."""

    app: str
    user: str
    id: str


@dataclass(frozen=True)
class StoredEvent:
    """A stored event: its JSON as clients see it, and the fields that a store needs.

    ``timestamp`` is in Unix seconds; the keys of ``state_delta`` have their prefixes. ``private``
    is the event's JSON with the fields that are hidden from clients, or empty without such fields.
    """

    id: str
    timestamp: float
    json: bytes
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    private: bytes = b""


class Revision(NamedTuple):
    """A moment of a session's history; revisions are compared within one process.

    Of two revisions with the same ``history``, the one with fewer ``events`` is the other's
    beginning. A session that is created again has another ``history``.
    """

    history: int
    events: int


@dataclass(frozen=True)
class StoredSession:
    """A snapshot of a session; the shared keys in ``state`` have their prefixes.

    ``last_update`` is in Unix seconds. ``events`` is empty if only the head was read. ``private``
    has, by their position, the events with fields that are hidden from clients.
    """

    key: SessionKey
    state: Mapping[str, Any]
    last_update: float
    events: tuple[bytes, ...] = ()
    revision: Revision = field(default_factory=lambda: Revision(0, 0))
    private: Mapping[int, bytes] = field(default_factory=dict)

    def events_after(self, count: int) -> list[bytes]:
        """Return the events after the first ``count``, with the fields hidden from clients."""
        return [self.private.get(n, self.events[n]) for n in range(count, len(self.events))]


class ArtifactKey(NamedTuple):
    """The key of an artifact; ``session`` is empty if the user's sessions share the artifact."""

    app: str
    user: str
    session: str
    name: str


@dataclass(frozen=True)
class StoredArtifact:
    """One version of an artifact; ``created`` is in Unix seconds, ``json`` is the part as JSON."""

    key: ArtifactKey
    version: int
    mime_type: str | None
    custom_metadata: Mapping[str, Any]
    created: float
    json: bytes = b""


_histories = itertools.count(1)


class _Session:
    def __init__(self, state: dict[str, Any], now: float) -> None:
        self.state = state
        self.events: list[bytes] = []
        self.private: dict[int, bytes] = {}
        self.last_update = now
        self._history = next(_histories)

    @property
    def revision(self) -> Revision:
        """The current moment of the history."""
        return Revision(self._history, len(self.events))

    def add(self, json: bytes, private: bytes) -> None:
        """Add an event to the history."""
        if private:
            self.private[len(self.events)] = private
        self.events.append(json)


class SessionStore:
    """Sessions and their events, in memory; each method is atomic."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], dict[str, _Session]] = {}
        self._users: dict[tuple[str, str], dict[str, Any]] = {}
        self._apps: dict[str, dict[str, Any]] = {}

    async def create(
        self, key: SessionKey, initial: Mapping[str, Any], events: Sequence[StoredEvent], now: float
    ) -> bool:
        """Store a new session with its first events; return False if the id is taken."""
        sessions = self._sessions.setdefault((key.app, key.user), {})
        if key.id in sessions:
            return False
        sessions[key.id] = session = _Session({}, now)
        self._apply(key, session, initial)
        self._append(key, session, events)
        return True

    async def read(self, key: SessionKey) -> StoredSession | None:
        """Return a session with its events, or None."""
        session = self._find(key)
        return None if session is None else self._with_events(key, session)

    async def has(self, key: SessionKey) -> bool:
        """Return whether a session exists."""
        return self._find(key) is not None

    async def head(self, key: SessionKey) -> StoredSession | None:
        """Return a session without its events, or None, in a time independent of their number."""
        session = self._find(key)
        return None if session is None else self._stored(key, session)

    async def of_user(self, app: str, user: str) -> Sequence[StoredSession]:
        """Return a user's sessions without their events, the least recently updated first."""
        sessions = self._sessions.get((app, user), {})
        stored = [self._stored(SessionKey(app, user, id_), s) for id_, s in sessions.items()]
        return sorted(stored, key=lambda session: (session.last_update, session.key.id))

    async def all(self) -> Sequence[StoredSession]:
        """Return every session with its events."""
        return [
            self._with_events(SessionKey(app, user, id_), session)
            for (app, user), sessions in self._sessions.items()
            for id_, session in sessions.items()
        ]

    async def append(self, key: SessionKey, events: Sequence[StoredEvent]) -> Revision | None:
        """Store events and apply them to the state; return None if there is no such session."""
        session = self._find(key)
        if session is None:
            return None
        self._append(key, session, events)
        return session.revision

    async def delete(self, key: SessionKey) -> bool:
        """Delete a session and its events; return False if there was none."""
        return self._sessions.get((key.app, key.user), {}).pop(key.id, None) is not None

    async def clear(self) -> None:
        """Delete everything."""
        self._sessions.clear()
        self._users.clear()
        self._apps.clear()

    async def restore(self) -> None:
        """Load the data of an earlier process."""

    def _find(self, key: SessionKey) -> _Session | None:
        return self._sessions.get((key.app, key.user), {}).get(key.id)

    def _append(self, key: SessionKey, session: _Session, events: Sequence[StoredEvent]) -> None:
        for event in events:
            session.add(event.json, event.private)
            session.last_update = event.timestamp
            self._apply(key, session, event.state_delta)

    def _apply(self, key: SessionKey, session: _Session, delta: Mapping[str, Any]) -> None:
        if not delta:
            return
        scoped = split_scopes(delta)
        session.state.update(scoped.session)
        if scoped.app:
            self._apps.setdefault(key.app, {}).update(scoped.app)
        if scoped.user:
            self._users.setdefault((key.app, key.user), {}).update(scoped.user)

    def _with_events(self, key: SessionKey, session: _Session) -> StoredSession:
        return dataclasses.replace(
            self._stored(key, session),
            events=tuple(session.events),
            private=dict(session.private),
        )

    def _stored(self, key: SessionKey, session: _Session) -> StoredSession:
        scoped = ScopedState(
            app=self._apps.get(key.app, {}),
            user=self._users.get((key.app, key.user), {}),
            session=session.state,
        )
        state = merge_scopes(scoped)
        return StoredSession(key, state, session.last_update, revision=session.revision)


class ArtifactStore:
    """Artifacts and their versions, which are numbered from 0, in memory."""

    scheme = "memory"  # of the artifacts' URIs

    def __init__(self) -> None:
        self._artifacts: dict[ArtifactKey, list[StoredArtifact]] = {}

    async def save(
        self,
        key: ArtifactKey,
        part: bytes,
        mime_type: str | None,
        custom_metadata: Mapping[str, Any],
        now: float,
    ) -> StoredArtifact:
        """Store a new version and return it without its content."""
        versions = self._artifacts.setdefault(key, [])
        saved = StoredArtifact(key, len(versions), mime_type, custom_metadata, now, part)
        versions.append(saved)
        return _without_content(saved)

    async def load(self, key: ArtifactKey, version: int | None) -> StoredArtifact | None:
        """Return a version with its content, by default the newest, or None if there is none."""
        versions = self._artifacts.get(key, [])
        if version is None:
            return versions[-1] if versions else None
        return versions[version] if 0 <= version < len(versions) else None

    async def versions(self, key: ArtifactKey) -> Sequence[StoredArtifact]:
        """Return every version without its content, oldest first."""
        return [_without_content(artifact) for artifact in self._artifacts.get(key, [])]

    async def names(self, app: str, user: str, session: str) -> Sequence[str]:
        """Return the names of a session's artifacts and of the user's, sorted."""
        owners = ((app, user, session), (app, user, ""))
        return sorted(key.name for key in self._artifacts if key[:3] in owners)

    async def delete(self, key: ArtifactKey) -> None:
        """Delete every version."""
        self._artifacts.pop(key, None)

    async def clear(self) -> None:
        """Delete everything."""
        self._artifacts.clear()

    async def restore(self) -> None:
        """Load the data of an earlier process."""


def _without_content(artifact: StoredArtifact) -> StoredArtifact:
    return dataclasses.replace(artifact, json=b"")
