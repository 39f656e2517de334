"""The API server, assembled from its stores, services and routes."""

from __future__ import annotations

from starlette.routing import BaseRoute

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.api_server import routes
from agentdouble.api_server.artifact_routes import ArtifactRoutes
from agentdouble.api_server.artifacts import ArtifactService
from agentdouble.api_server.persistent import PersistentArtifacts, PersistentSessions
from agentdouble.api_server.runs import Runs
from agentdouble.api_server.sessions import SessionService
from agentdouble.api_server.stores import ArtifactStore, SessionStore
from agentdouble.core.clock import Clock
from agentdouble.state import Store


class ApiServer:
    """API-server mode as an ASGI application (``app``), which is mounted at ``PATHS``."""

    def __init__(
        self, clock: Clock, version: str, directory: AgentsDirectory, store: Store
    ) -> None:
        sessions, artifacts = _stores(store)
        self.sessions = SessionService(sessions, clock)
        self.artifacts = ArtifactService(artifacts, clock)
        self.runs = Runs(directory, self.sessions, self.artifacts)
        self._version = version
        self.app = routes.Application(self._routes())

    async def load(self) -> None:
        """Load the data of an earlier process; the store must be open."""
        await self.sessions.store.restore()
        await self.artifacts.store.restore()

    async def reset(self) -> None:
        """Delete every session and artifact, and the agents' other state."""
        self.runs.reset()
        await self.sessions.store.clear()
        await self.artifacts.store.clear()

    async def close(self) -> None:
        """End every run."""
        await self.runs.close()

    def _routes(self) -> list[BaseRoute]:
        return [
            *routes.RunRoutes(self.runs).routes(),
            *routes.SessionRoutes(self.sessions).routes(),
            *ArtifactRoutes(self.artifacts).routes(),
            *routes.unbuilt_routes(),
            routes.route("GET", "/health", routes.health),
            routes.route("GET", "/version", routes.Version(self._version).show),
        ]


def _stores(store: Store) -> tuple[SessionStore, ArtifactStore]:
    if not store.outlives:  # it would store everything a second time
        return SessionStore(), ArtifactStore()
    return PersistentSessions(store), PersistentArtifacts(store)
