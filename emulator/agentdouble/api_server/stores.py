"""What the stores of sessions and artifacts can do; ``memory.py`` and ``kept.py`` have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentdouble.api_server.records import (
    ArtifactKey,
    SessionKey,
    StoredArtifact,
    StoredEvent,
    StoredSession,
)


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
        """Return a user's sessions without their events, the longest untouched first."""

    async def append(self, key: SessionKey, events: Sequence[StoredEvent]) -> bool:
        """Keep events and what they do to the state; return False if there is no such session."""

    async def delete(self, key: SessionKey) -> bool:
        """Forget a session and its events; return False if there was none."""

    async def clear(self) -> None:
        """Forget everything."""

    async def restore(self) -> None:
        """Take up what was kept before the process began."""


class ArtifactStore(Protocol):
    """Keeps artifacts and their versions, which are numbered from 0."""

    scheme: str  # of the URIs that name what it keeps

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
        """Take up what was kept before the process began."""
