"""Artifacts: files of a session, stored in versions, and their routes (API-13, U-ARTIFACTS)."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from typing_extensions import NotRequired, TypedDict

from agentdouble import ledger
from agentdouble.api_server import wire
from agentdouble.api_server.routes import SESSION, json, key, route
from agentdouble.api_server.stores import ArtifactKey, ArtifactStore, SessionKey, StoredArtifact
from agentdouble.api_server.wire import Part, dumps, to_wire
from agentdouble.clock import Clock
from agentdouble.errors import ApiError
from agentdouble.openapi import operation

SHARED = "user:"


class ArtifactVersion(TypedDict):
    """The metadata of a version of an artifact."""

    version: int
    canonicalUri: str
    customMetadata: Mapping[str, Any] | None
    createTime: float
    mimeType: NotRequired[str]


class ArtifactService:
    """The artifacts of all sessions.

    As on the real server, artifacts outlive their session, and the session need not exist. An
    artifact whose name begins with ``user:`` is shared by the user's sessions.
    """

    def __init__(self, store: ArtifactStore, clock: Clock) -> None:
        self.store = store
        self._clock = clock

    async def names(self, session: SessionKey) -> Sequence[str]:
        """Return the names of a session's artifacts and of the user's, sorted."""
        return await self.store.names(*session)

    async def save(
        self,
        session: SessionKey,
        name: str,
        part: Mapping[str, Any],
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> StoredArtifact:
        """Store a new version; raise ApiError for a part without content."""
        return await self.store.save(
            _key(session, name),
            dumps(part),
            _mime_type(part),
            custom_metadata or {},
            self._clock.now().timestamp(),
        )

    async def load(self, session: SessionKey, name: str, version: int | None) -> bytes:
        """Return the JSON of a version, the newest for None; raise ApiError if there is none."""
        found = await self.find(session, name, version)
        if found is None:
            raise ApiError(404, "Artifact not found")
        return found.json

    async def find(
        self, session: SessionKey, name: str, version: int | None
    ) -> StoredArtifact | None:
        """Return a version with its content, the newest for None, or None if there is none."""
        return await self.store.load(_key(session, name), version)

    async def version(
        self, session: SessionKey, name: str, version: int | None
    ) -> StoredArtifact | None:
        """Return a version without its content, the newest for None, or None."""
        found = await self.versions(session, name)
        number = len(found) - 1 if version is None else version
        return found[number] if 0 <= number < len(found) else None

    async def versions(self, session: SessionKey, name: str) -> Sequence[StoredArtifact]:
        """Return every version without its content, oldest first."""
        return await self.store.versions(_key(session, name))

    async def delete(self, session: SessionKey, name: str) -> None:
        """Delete every version."""
        await self.store.delete(_key(session, name))

    def describe(self, artifact: StoredArtifact) -> ArtifactVersion:
        """Return the metadata of a version for the response."""
        key = artifact.key
        session = f"/sessions/{key.session}" if key.session else ""
        described: ArtifactVersion = {
            "version": artifact.version,
            "canonicalUri": f"{self.store.scheme}://apps/{key.app}/users/{key.user}{session}"
            f"/artifacts/{key.name}/versions/{artifact.version}",
            "customMetadata": artifact.custom_metadata,
            "createTime": artifact.created,
        }
        if artifact.mime_type is not None:
            described["mimeType"] = artifact.mime_type
        return described


def _key(session: SessionKey, name: str) -> ArtifactKey:
    owner = "" if name.startswith(SHARED) else session.id
    return ArtifactKey(session.app, session.user, owner, name)


def _mime_type(part: Mapping[str, Any]) -> str | None:
    for kind in ("inlineData", "fileData"):
        if kind in part:
            mime_type: str | None = part[kind].get("mimeType")
            return mime_type
    if "text" in part:
        return "text/plain"
    raise ApiError(400, "Not supported artifact type.")


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

    @operation(ArtifactVersion, body=wire.SaveArtifact)
    async def save(self, request: Request) -> Response:
        """Store a new version of an artifact and describe it."""
        body = await wire.required(request, wire.ARTIFACT)
        saved = await self._artifacts.save(
            key(request), body.filename, to_wire(body.artifact), body.custom_metadata
        )
        return json(dumps(self._artifacts.describe(saved)))

    @operation(Part, query=VersionQuery)
    async def load(self, request: Request) -> Response:
        """Return an artifact, the newest version by default."""
        version = wire.number(request, "version")
        return json(await self._artifacts.load(key(request), _name(request), version))

    @operation(Part)
    async def load_version(self, request: Request) -> Response:
        """Return a version of an artifact."""
        version = _version(request)
        return json(await self._artifacts.load(key(request), _name(request), version))

    @operation(builtins.list[int])
    async def versions(self, request: Request) -> Response:
        """Return the numbers of an artifact's versions."""
        found = await self._artifacts.versions(key(request), _name(request))
        return json(dumps([one.version for one in found]))

    @operation(ArtifactVersion)
    async def describe(self, request: Request) -> Response:
        """Describe a version of an artifact."""
        found = await self._artifacts.version(key(request), _name(request), _version(request))
        if found is None:
            raise ApiError(404, "Artifact version not found")
        return json(dumps(self._artifacts.describe(found)))

    @operation(builtins.list[ArtifactVersion])
    async def describe_all(self, request: Request) -> Response:
        """Describe every version of an artifact."""
        found = await self._artifacts.versions(key(request), _name(request))
        return json(dumps([self._artifacts.describe(one) for one in found]))

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
