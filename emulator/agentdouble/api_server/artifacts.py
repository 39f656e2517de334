"""Artifacts: files of a session, stored in versions (API-13, U-ARTIFACTS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import NotRequired, TypedDict

from agentdouble.api_server.json_text import dumps
from agentdouble.api_server.stores import ArtifactKey, ArtifactStore, SessionKey, StoredArtifact
from agentdouble.core.clock import Clock
from agentdouble.errors import ApiError

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
        """Return the JSON of a version, by default the newest; raise ApiError if there is none."""
        artifact = await self.find(session, name, version)
        if artifact is None:
            raise ApiError(404, "Artifact not found")
        return artifact.json

    async def find(
        self, session: SessionKey, name: str, version: int | None
    ) -> StoredArtifact | None:
        """Return a version with its content, by default the newest, or None if there is none."""
        return await self.store.load(_key(session, name), version)

    async def version(
        self, session: SessionKey, name: str, version: int | None
    ) -> StoredArtifact | None:
        """Return a version without its content, by default the newest, or None."""
        artifacts = await self.versions(session, name)
        number = len(artifacts) - 1 if version is None else version
        return artifacts[number] if 0 <= number < len(artifacts) else None

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
