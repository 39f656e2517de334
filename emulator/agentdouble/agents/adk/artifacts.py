"""ADK's artifact service over the artifacts of the server."""

from __future__ import annotations

from typing import Any

from google.adk.artifacts import BaseArtifactService
from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.genai import types

from agentdouble.agents.adk.current import current
from agentdouble.agents.framework import HostArtifacts

SHARED = "user:"


class Artifacts(BaseArtifactService):  # type: ignore[misc,unused-ignore]
    """The artifacts of the server, for the run in whose context they are asked for."""

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Store a new version; a name without ``user:`` needs a session."""
        if session_id is None and not filename.startswith(SHARED):
            raise ValueError("Session ID must be provided for session-scoped artifacts.")
        part = types.Part.model_validate(artifact)
        wire = part.model_dump(mode="json", by_alias=True, exclude_none=True)
        place = _place(app_name, user_id, session_id)
        return await place.save(filename, wire, custom_metadata)

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """Return a version, the newest by default, or None."""
        found = await _place(app_name, user_id, session_id).load(filename, version)
        return None if found is None else types.Part.model_validate_json(found)

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """Return the names of a session's artifacts and of the user's."""
        return list(await _place(app_name, user_id, session_id).names())

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete every version."""
        await _place(app_name, user_id, session_id).delete(filename)

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """Return the numbers of the versions."""
        found = await _place(app_name, user_id, session_id).versions(filename)
        return [one["version"] for one in found]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Describe every version."""
        found = await _place(app_name, user_id, session_id).versions(filename)
        return [ArtifactVersion.model_validate(one) for one in found]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """Describe a version, the newest by default, or return None."""
        found = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        number = len(found) - 1 if version is None else version
        return found[number] if 0 <= number < len(found) else None


def _place(app: str, user: str, session: str | None) -> HostArtifacts:
    return current().host.artifacts(app, user, session)
