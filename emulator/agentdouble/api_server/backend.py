"""What stands behind the session that an agent sees: the stores, asked on the server's loop."""

from __future__ import annotations

from agentdouble.agents.events import Event, Part
from agentdouble.api_server.artifacts import Artifacts
from agentdouble.api_server.encoding import loads
from agentdouble.api_server.records import SessionKey
from agentdouble.api_server.stores import SessionStore
from agentdouble.api_server.turns import Questions
from agentdouble.errors import SessionNotFoundError


class SessionBackend:
    """The stores as one session's agent may ask them."""

    def __init__(
        self, key: SessionKey, store: SessionStore, artifacts: Artifacts, questions: Questions
    ) -> None:
        self._key = key
        self._store = store
        self._artifacts = artifacts
        self._questions = questions

    async def history(self) -> tuple[Event, ...]:
        """Return the session's events, oldest first."""
        stored = await self._questions.ask(lambda: self._store.read(self._key))
        if stored is None:
            raise SessionNotFoundError(f"Session {self._key.id} not found.")
        return tuple(Event.from_wire(loads(event)) for event in stored.events)

    async def save_artifact(self, name: str, part: Part) -> int:
        """Keep a new version of an artifact and return its number, from 0."""
        saved = await self._questions.ask(lambda: self._artifacts.save(self._key, name, part.wire))
        return saved.version

    async def load_artifact(self, name: str, version: int | None) -> Part | None:
        """Return a version of an artifact, the newest for None, or None if there is none."""
        found = await self._questions.ask(lambda: self._artifacts.find(self._key, name, version))
        return None if found is None else Part(loads(found.json))

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the session's artifacts, sorted."""
        return tuple(await self._questions.ask(lambda: self._artifacts.names(self._key)))
