"""The server's side of a run whose framework has its own runner: its services."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agentdouble.agents.framework import Framework, FrameworkEvent, SessionRecord
from agentdouble.api_server import agent_run
from agentdouble.api_server.artifacts import ArtifactService
from agentdouble.api_server.histories import Opened
from agentdouble.api_server.json_text import dumps, loads
from agentdouble.api_server.models import CreateSession
from agentdouble.api_server.run import RunServices
from agentdouble.api_server.stores import SessionKey, StoredSession
from agentdouble.server.cross_loop_queue import CrossLoopQueue


class RunHost:
    """A Host for one run; ``opened`` is the run's session, for its first use."""

    def __init__(
        self,
        services: RunServices,
        framework: Framework,
        queue: CrossLoopQueue[agent_run.Item],
        queries: agent_run.Queries,
        opened: Opened,
    ) -> None:
        self.aborted = asyncio.Event()
        self._services = services
        self._framework = framework
        self._queue = queue
        self._queries = queries
        self._opened: Opened | None = opened

    def now(self) -> float:
        """Return the platform's time in Unix seconds."""
        return self._services.sessions.now()

    def append(self, app: str, user: str, session: str, event: FrameworkEvent) -> None:
        """Store an event; if its session has been deleted, the run ends."""
        self._queries.check_open()
        self._queue.put_soon(agent_run.Appended(SessionKey(app, user, session), event))

    async def session(self, app: str, user: str, session: str) -> SessionRecord | None:
        """Return a session with its events, or None."""
        key = SessionKey(app, user, session)
        opened, self._opened = self._opened, None
        if opened is None or opened.session.key != key:
            opened = await self._queries.ask(lambda: self._services.histories.open(key))
        if opened is None:
            return None
        return record(opened.session, await self._events(opened))

    async def sessions(self, app: str, user: str | None) -> Sequence[SessionRecord]:
        """Return the sessions of a user or of all users, without their events."""
        return [record(s) for s in await self._queries.ask(lambda: self._listed(app, user))]

    async def create(
        self, app: str, user: str, session: str | None, state: Mapping[str, Any]
    ) -> SessionRecord:
        """Create a session; raise ApiError if it exists."""
        body = CreateSession(session_id=session, state=dict(state))
        sessions = self._services.sessions
        return record(await self._queries.ask(lambda: sessions.create(app, user, body)))

    async def delete(self, app: str, user: str, session: str) -> None:
        """Delete a session, if it exists."""
        store = self._services.sessions.store
        await self._queries.ask(lambda: store.delete(SessionKey(app, user, session)))

    def artifacts(self, app: str, user: str, session: str | None) -> RunArtifacts:
        """Return a session's artifacts, or the user's own if ``session`` is None."""
        key = SessionKey(app, user, session or "")
        return RunArtifacts(self._services.artifacts, key, self._queries)

    async def _events(self, opened: Opened) -> list[Any]:
        parsed = [self._framework.parse(event) for event in opened.unread]
        if parsed:
            await self._queries.ask(lambda: self._remember(opened, parsed))
        return [*opened.parsed, *parsed]

    async def _remember(self, opened: Opened, parsed: Sequence[Any]) -> None:
        self._services.histories.add_read(opened, parsed)

    async def _listed(self, app: str, user: str | None) -> Sequence[StoredSession]:
        store = self._services.sessions.store
        if user is not None:
            return await store.of_user(app, user)
        sessions = [session for session in await store.all() if session.key.app == app]
        return sorted(sessions, key=lambda s: (s.last_update, s.key.user, s.key.id))


class RunArtifacts:
    """The artifacts of a session, in one run."""

    def __init__(
        self,
        service: ArtifactService,
        key: SessionKey,
        queries: agent_run.Queries,
    ) -> None:
        self._service = service
        self._key = key
        self._ask = queries.ask

    async def save(
        self, name: str, part: Mapping[str, Any], custom_metadata: Mapping[str, Any] | None
    ) -> int:
        """Store a new version and return its number."""
        saved = await self._ask(lambda: self._service.save(self._key, name, part, custom_metadata))
        return saved.version

    async def load(self, name: str, version: int | None) -> bytes | None:
        """Return a version, by default the newest, or None if there is none."""
        artifact = await self._ask(lambda: self._service.find(self._key, name, version))
        return None if artifact is None else artifact.json

    async def names(self) -> Sequence[str]:
        """Return the names, sorted."""
        return await self._ask(lambda: self._service.names(self._key))

    async def versions(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Describe every version, oldest first."""
        artifacts = await self._ask(lambda: self._service.versions(self._key, name))
        return [self._service.describe(artifact) for artifact in artifacts]

    async def delete(self, name: str) -> None:
        """Delete every version."""
        await self._ask(lambda: self._service.delete(self._key, name))


def record(stored: StoredSession, events: Sequence[Any] = ()) -> SessionRecord:
    """Return a stored session for a framework, with its own copy of the state."""
    state = loads(dumps(stored.state)) if stored.state else {}
    return SessionRecord(*stored.key, state, stored.last_update, events)
