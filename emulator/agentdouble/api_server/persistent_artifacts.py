"""Artifacts that outlive the process; their contents are read only on request."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentdouble.api_server.artifact_contents import Contents, Place
from agentdouble.api_server.memory import MemoryArtifacts
from agentdouble.api_server.stores import ArtifactKey, StoredArtifact
from agentdouble.errors import StateError
from agentdouble.state import Change, Store, Undo, unbroken

_ARTIFACT = "api-artifact"


class PersistentArtifacts(MemoryArtifacts):
    """An ArtifactStore that writes every change to the state store before a method returns."""

    scheme = "state"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._contents = Contents(store)
        self._places: dict[tuple[ArtifactKey, int], Place] = {}

    async def restore(self) -> None:
        """Load the artifacts of an earlier process, without their contents."""
        records = (await self._store.load(_ARTIFACT)).values()
        for record in sorted(records, key=lambda one: one["version"]):
            key = ArtifactKey(*record["key"])
            kept = StoredArtifact(
                key,
                record["version"],
                record["mime_type"],
                record["custom_metadata"],
                record["created"],
            )
            self._artifacts.setdefault(key, []).append(kept)
            self._places[key, kept.version] = Place(*record["place"])
        await self._contents.sweep(self._places.values())

    async def save(
        self,
        key: ArtifactKey,
        part: bytes,
        mime_type: str | None,
        custom_metadata: Mapping[str, Any],
        now: float,
    ) -> StoredArtifact:
        """Store a new version and return it without its content."""
        return await unbroken(self._save(key, part, mime_type, custom_metadata, now))

    async def load(self, key: ArtifactKey, version: int | None) -> StoredArtifact | None:
        """Return a version with its content, the newest for None, or None if there is none."""
        found = await super().load(key, version)
        if found is None:
            return None
        place = self._places[key, found.version]
        try:
            return dataclasses.replace(found, json=await self._contents.read(place))
        except StateError:
            if self._places.get((key, found.version)) is place:
                raise
            return None  # it was deleted while it was read

    async def delete(self, key: ArtifactKey) -> None:
        """Delete every version."""
        await unbroken(self._delete([key]))

    async def clear(self) -> None:
        """Delete everything."""
        await unbroken(self._delete(list(self._artifacts)))

    async def _save(
        self,
        key: ArtifactKey,
        part: bytes,
        mime_type: str | None,
        custom_metadata: Mapping[str, Any],
        now: float,
    ) -> StoredArtifact:
        place, content = await self._contents.keep(part)
        undo = self._undo_of([key])
        saved = await super().save(key, b"", mime_type, custom_metadata, now)
        self._places[key, saved.version] = place
        record = {
            "key": key,
            "version": saved.version,
            "mime_type": mime_type,
            "custom_metadata": custom_metadata,
            "created": now,
            "place": place,
        }
        kept = Change(_ARTIFACT, json.dumps([*key, saved.version]), record)
        try:
            await self._store.write([*content, kept], undo, [key])
        except StateError:
            await self._contents.remove([place])
            raise
        return saved

    async def _delete(self, keys: Sequence[ArtifactKey]) -> None:
        undo = self._undo_of(keys)
        changes: list[Change] = []
        places: list[Place] = []
        for key in keys:
            for one in self._artifacts.pop(key, []):
                places.append(self._places.pop((key, one.version)))
                changes.append(Change(_ARTIFACT, json.dumps([*key, one.version])))
                changes += self._contents.forget(places[-1])
        await self._store.write(changes, undo, keys)
        await self._contents.remove(places)

    def _undo_of(self, keys: Sequence[ArtifactKey]) -> Undo:
        """Return a function that restores the artifacts to their state of now."""
        before = {key: list(self._artifacts.get(key, [])) for key in keys}
        places = {
            (key, one.version): self._places[key, one.version]
            for key, versions in before.items()
            for one in versions
        }

        def undo() -> None:
            for key, versions in before.items():
                for one in self._artifacts.pop(key, []):
                    self._places.pop((key, one.version), None)
                if versions:
                    self._artifacts[key] = versions
            self._places |= places

        return undo
