"""Stores of sessions and artifacts: their records and their interfaces.

``memory.py`` has the stores of a double without a state, ``persistent.py`` and
``persistent_artifacts.py`` those of one with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class SessionKey(NamedTuple):
    """Which session: ids are unique among one user's sessions of one application."""

    app: str
    user: str
    id: str


@dataclass(frozen=True)
class StoredEvent:
    """A stored event: its JSON, and what a store must know of it.

    ``timestamp`` is in Unix seconds; ``state_delta`` still has its prefixes.
    """

    id: str
    timestamp: float
    json: bytes
    state_delta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredSession:
    """A session as it was when it was read; ``state`` has the shared keys with their prefixes.

    ``last_update`` is in Unix seconds. ``events`` is empty where they were not asked for.
    """

    key: SessionKey
    state: Mapping[str, Any]
    last_update: float
    events: tuple[bytes, ...] = ()


class ArtifactKey(NamedTuple):
    """Which artifact: ``session`` is empty for one that is shared over the user's sessions."""

    app: str
    user: str
    session: str
    name: str


@dataclass(frozen=True)
class StoredArtifact:
    """One version of an artifact; ``created`` is in Unix seconds, ``json`` is the part's."""

    key: ArtifactKey
    version: int
    mime_type: str | None
    custom_metadata: Mapping[str, Any]
    created: float
    json: bytes = b""


APP = "app:"
USER = "user:"
TEMP = "temp:"


@dataclass
class ScopedState:
    """State by scope, the keys without their prefixes.

    A session has state of its own, its user's (``user:``) and its application's (``app:``). Keys
    that begin with ``temp:`` belong to one run and are never kept.
    """

    app: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)


def split_scopes(state: Mapping[str, Any]) -> ScopedState:
    """Return state by scope, without temporary keys."""
    scoped = ScopedState()
    for key, value in state.items():
        if key.startswith(APP):
            scoped.app[key[len(APP) :]] = value
        elif key.startswith(USER):
            scoped.user[key[len(USER) :]] = value
        elif not key.startswith(TEMP):
            scoped.session[key] = value
    return scoped


def merge_scopes(scoped: ScopedState) -> dict[str, Any]:
    """Return one mapping with prefixed keys: the session's, the application's, the user's."""
    merged = dict(scoped.session)
    merged.update({APP + key: value for key, value in scoped.app.items()})
    merged.update({USER + key: value for key, value in scoped.user.items()})
    return merged


class SessionStore(Protocol):
    """Keeps sessions and their events. Each method happens whole or not at all."""

    async def create(
        self, key: SessionKey, state: Mapping[str, Any], events: Sequence[StoredEvent], now: float
    ) -> bool:
        """Keep a new session with its first events; return False if the id is taken."""

    async def read(self, key: SessionKey) -> StoredSession | None:
        """Return a session with its events, or None."""

    async def head(self, key: SessionKey) -> StoredSession | None:
        """Return a session without its events, or None; it costs the same however many."""

    async def of_user(self, app: str, user: str) -> Sequence[StoredSession]:
        """Return a user's sessions without their events, the least recently updated first."""

    async def append(self, key: SessionKey, events: Sequence[StoredEvent]) -> bool:
        """Keep events and what they do to the state; return False if there is no such session."""

    async def delete(self, key: SessionKey) -> bool:
        """Forget a session and its events; return False if there was none."""

    async def clear(self) -> None:
        """Forget everything."""

    async def restore(self) -> None:
        """Load what an earlier process kept."""


class ArtifactStore(Protocol):
    """Keeps artifacts and their versions, which are numbered from 0."""

    scheme: str  # of the URIs of its artifacts

    async def save(
        self,
        key: ArtifactKey,
        json: bytes,
        mime_type: str | None,
        custom_metadata: Mapping[str, Any],
        now: float,
    ) -> StoredArtifact:
        """Keep a new version and return it without its content."""

    async def load(self, key: ArtifactKey, version: int | None) -> StoredArtifact | None:
        """Return a version with its content, the newest for None, or None if there is none."""

    async def versions(self, key: ArtifactKey) -> Sequence[StoredArtifact]:
        """Return every version without its content, oldest first."""

    async def names(self, app: str, user: str, session: str) -> Sequence[str]:
        """Return the names of a session's artifacts and of the user's, sorted."""

    async def delete(self, key: ArtifactKey) -> None:
        """Forget every version."""

    async def clear(self) -> None:
        """Forget everything."""

    async def restore(self) -> None:
        """Load what an earlier process kept."""
