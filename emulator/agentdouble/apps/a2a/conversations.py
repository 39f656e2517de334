"""The memory of agents behind A2A: one session for each context of each caller."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from agentdouble.agents.agent import Event, Part

LIMIT = 1000  # contexts of an application; above it, the least recently used one is forgotten


@dataclass
class Conversation:
    """The memory of a session, a ``Backend`` of ``agentdouble.agents.agent``."""

    state: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    artifacts_by_name: dict[str, list[Part]] = field(default_factory=dict)

    async def history(self) -> tuple[Event, ...]:
        """Return the events so far, oldest first."""
        return tuple(self.events)

    async def save_artifact(self, name: str, part: Part) -> int:
        """Store a new version of an artifact and return its number, counted from 0."""
        versions = self.artifacts_by_name.setdefault(name, [])
        versions.append(part)
        return len(versions) - 1

    async def load_artifact(self, name: str, version: int | None) -> Part | None:
        """Return a version of an artifact, the newest by default, or None if there is none."""
        versions = self.artifacts_by_name.get(name, [])
        if version is None:
            return versions[-1] if versions else None
        return versions[version] if 0 <= version < len(versions) else None

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the artifacts, sorted."""
        return tuple(sorted(self.artifacts_by_name))


class Conversations:
    """The conversations of an application, in memory."""

    def __init__(self) -> None:
        self._by_context: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    def of(self, user: str, context_id: str) -> Conversation:
        """Return a caller's conversation; start it if it is new."""
        conversation = self._by_context.setdefault((user, context_id), Conversation())
        self._by_context.move_to_end((user, context_id))
        while len(self._by_context) > LIMIT:
            self._by_context.popitem(last=False)
        return conversation
