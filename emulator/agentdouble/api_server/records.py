"""What the stores keep: sessions and their events, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class SessionKey(NamedTuple):
    """Which session: ids are unique among one user's sessions of one application."""

    app: str
    user: str
    id: str


@dataclass(frozen=True)
class StoredEvent:
    """An event as it is kept: its JSON, and what a store must know of it.

    ``timestamp`` is in Unix seconds; ``state_delta`` has its prefixes still.
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


class Shown(NamedTuple):
    """An event on its way to the client; ``artifacts`` says whether it tells of any."""

    json: bytes
    artifacts: bool
