"""The API server, assembled from its stores, services and routes, and the routes of artifacts.

The name of an artifact may contain slashes.
"""

from __future__ import annotations

import builtins

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from typing_extensions import TypedDict

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.api_server import endpoints, models, request_values
from agentdouble.api_server.artifacts import ArtifactService, ArtifactVersion
from agentdouble.api_server.endpoints import SESSION, json, key, route
from agentdouble.api_server.json_text import dumps
from agentdouble.api_server.models import Part, to_wire
from agentdouble.api_server.persistent import PersistentArtifacts, PersistentSessions
from agentdouble.api_server.runs import Runs
from agentdouble.api_server.sessions import SessionService
from agentdouble.api_server.stores import ArtifactStore, SessionStore
from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import ApiError
from agentdouble.openapi import operation
from agentdouble.state import Store

ARTIFACTS = SESSION + "/artifacts"
ARTIFACT = ARTIFACTS + "/{name:path}"
LATEST = "latest"


class VersionQuery(TypedDict, total=False):
    """A version of an artifact, by its number."""

    version: int


class ArtifactRoutes:
    """The routes of artifacts."""

    def __init__(self, artifacts: ArtifactService) -> None:
        self._artifacts = artifacts

    def routes(self) -> list[BaseRoute]:
        """Return the routes; a name takes the whole path unless an earlier route matches."""
        return [
            route("GET", ARTIFACT + "/versions/{version}/metadata", self.describe),
            route("GET", ARTIFACT + "/versions/metadata", self.describe_all),
            route("POST", ARTIFACTS, self.save),
            route("GET", ARTIFACT + "/versions/{version}", self.load_version),
            route("GET", ARTIFACTS, self.list),
            route("GET", ARTIFACT + "/versions", self.versions),
            route("GET", ARTIFACT, self.load),
            route("DELETE", ARTIFACT, self.delete),
        ]

    @operation(builtins.list[str])
    async def list(self, request: Request) -> Response:
        """List the names of a session's artifacts (API-13)."""
        ledger.choose("U-ARTIFACTS")
        return json(dumps(await self._artifacts.names(key(request))))

    @operation(ArtifactVersion, body=models.SaveArtifact)
    async def save(self, request: Request) -> Response:
        """Store a new version of an artifact and describe it."""
        body = await request_values.required(request, request_values.ARTIFACT)
        saved = await self._artifacts.save(
            key(request), body.filename, to_wire(body.artifact), body.custom_metadata
        )
        return json(dumps(self._artifacts.describe(saved)))

    @operation(Part, query=VersionQuery)
    async def load(self, request: Request) -> Response:
        """Return an artifact, the newest version by default."""
        version = request_values.number(request, "version")
        return json(await self._artifacts.load(key(request), _name(request), version))

    @operation(Part)
    async def load_version(self, request: Request) -> Response:
        """Return a version of an artifact."""
        version = _version(request)
        return json(await self._artifacts.load(key(request), _name(request), version))

    @operation(builtins.list[int])
    async def versions(self, request: Request) -> Response:
        """Return the numbers of an artifact's versions."""
        artifacts = await self._artifacts.versions(key(request), _name(request))
        return json(dumps([artifact.version for artifact in artifacts]))

    @operation(ArtifactVersion)
    async def describe(self, request: Request) -> Response:
        """Describe a version of an artifact."""
        artifact = await self._artifacts.version(key(request), _name(request), _version(request))
        if artifact is None:
            raise ApiError(404, "Artifact version not found")
        return json(dumps(self._artifacts.describe(artifact)))

    @operation(builtins.list[ArtifactVersion])
    async def describe_all(self, request: Request) -> Response:
        """Describe every version of an artifact."""
        artifacts = await self._artifacts.versions(key(request), _name(request))
        return json(dumps([self._artifacts.describe(artifact) for artifact in artifacts]))

    @operation(type(None))
    async def delete(self, request: Request) -> Response:
        """Delete an artifact; an unknown one is not an error."""
        await self._artifacts.delete(key(request), _name(request))
        return json(b"null")


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name


def _version(request: Request) -> int | None:
    named = request.path_params["version"]
    if named == LATEST:
        return None
    try:
        return int(named)
    except ValueError:
        raise ApiError(422, "Invalid version ID") from None


class ApiServer:
    """API-server mode as an ASGI application (``app``), which is mounted at ``PATHS``."""

    def __init__(
        self, clock: Clock, version: str, directory: AgentsDirectory, store: Store
    ) -> None:
        sessions, artifacts = _stores(store)
        self.sessions = SessionService(sessions, clock)
        self.artifacts = ArtifactService(artifacts, clock)
        self.runs = Runs(directory, self.sessions, self.artifacts)
        self.app = endpoints.Application(
            [
                *endpoints.RunRoutes(self.runs).routes(),
                *endpoints.SessionRoutes(self.sessions).routes(),
                *ArtifactRoutes(self.artifacts).routes(),
                *endpoints.unbuilt_routes(),
                route("GET", "/health", endpoints.health),
                route("GET", "/version", endpoints.VersionRoute(version).show),
            ]
        )

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


def _stores(store: Store) -> tuple[SessionStore, ArtifactStore]:
    if not store.outlives:  # otherwise everything would be stored a second time
        return SessionStore(), ArtifactStore()
    return PersistentSessions(store), PersistentArtifacts(store)
