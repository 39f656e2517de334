"""Artifacts that outlive the process: described from memory, their contents read when asked for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from agentdouble.api_server.contents import Contents, Place
from agentdouble.api_server.memory import MemoryArtifacts
from agentdouble.api_server.records import ArtifactKey, StoredArtifact
from agentdouble.errors import StateError
from agentdouble.state import Store

_ARTIFACT = "api-artifact"


class KeptArtifacts(MemoryArtifacts):
    """An ArtifactStore whose every change is in the state store before a method returns."""

    scheme = "state"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._contents = Contents(store)
        self._places: dict[tuple[ArtifactKey, int], Place] = {}

    async def restore(self) -> None:
        """Take up what was kept, without the contents."""
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
        """Keep a new version and return it without its content."""
        place = await self._contents.keep(part)
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
        self._store.put(_ARTIFACT, json.dumps([*key, saved.version]), record)
        await self._store.saved()
        return saved

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
        """Forget every version."""
        forgotten = self._forget(key)
        await super().delete(key)
        await self._store.saved()
        await self._contents.remove(forgotten)

    async def clear(self) -> None:
        """Forget everything."""
        forgotten = [place for key in self._artifacts for place in self._forget(key)]
        await super().clear()
        await self._store.saved()
        await self._contents.remove(forgotten)

    def _forget(self, key: ArtifactKey) -> list[Place]:
        """Queue the removal of every version; return where the contents are."""
        versions = [one.version for one in self._artifacts.get(key, [])]
        for version in versions:
            self._store.delete(_ARTIFACT, json.dumps([*key, version]))
        places = [self._places.pop((key, version)) for version in versions]
        for place in places:
            self._contents.forget(place)
        return places
