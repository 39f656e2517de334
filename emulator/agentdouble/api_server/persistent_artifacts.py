"""Artifacts that outlive the process: small contents in the state store, large ones as files."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from agentdouble.api_server.stores import ArtifactKey, MemoryArtifacts, StoredArtifact
from agentdouble.errors import StateError
from agentdouble.state import Change, Store, Undo, unbroken

T = TypeVar("T")

# Bytes. A content of at least this size becomes a file if the store has a directory. PostgreSQL has
# none, because a double on another machine must find the contents, too.
LARGE = 256 * 1024

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CONTENT = "api-artifact-content"
_WRITING = ".part"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_OURS = re.compile(rf"[0-9a-f]{{32}}({re.escape(_WRITING)})?")


class Place(NamedTuple):
    """The place of a content: the name of a record, or of a file."""

    name: str
    is_file: bool


class Contents:
    """Contents by their places; a content is written once and never changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._directory = store.directory

    async def keep(self, content: bytes) -> tuple[Place, list[Change]]:
        """Store a content as a file, or return the changes that store it.

        Raises StateError if the file cannot be written.
        """
        place = Place(uuid.uuid4().hex, len(content) >= LARGE and self._directory is not None)
        if not place.is_file:
            return place, [Change(_CONTENT, place.name, {"json": content.decode("utf-8")})]
        await _in_thread(partial(_write, self._path(place), content), self._path(place))
        return place, []

    async def read(self, place: Place) -> bytes:
        """Return a content; raise StateError if it is missing."""
        if place.is_file:
            return await _in_thread(self._path(place).read_bytes, self._path(place))
        record = await self._store.read(_CONTENT, place.name)
        if record is None:
            raise StateError(
                f"The state has lost the content {place.name} of an artifact.", where=place.name
            )
        return bytes(record["json"], "utf-8")

    def forget(self, place: Place) -> list[Change]:
        """Return the changes that remove a record; ``remove`` later removes a file."""
        return [] if place.is_file else [Change(_CONTENT, place.name)]

    async def remove(self, places: Iterable[Place]) -> None:
        """Remove the files at places without a record; errors are left to the next start."""
        for place in places:
            if place.is_file:
                path = self._path(place)
                with suppress(StateError):
                    await _in_thread(partial(path.unlink, missing_ok=True), path)

    async def sweep(self, places: Iterable[Place]) -> None:
        """Remove the files that are not among ``places``, which a killed process has left."""
        if self._directory is not None and self._directory.is_dir():
            kept = {place.name for place in places if place.is_file}
            await _in_thread(partial(_sweep, self._directory, kept), self._directory)

    def _path(self, place: Place) -> Path:
        assert self._directory is not None
        return self._directory / place.name


async def _in_thread(do: Callable[[], T], path: Path) -> T:
    """Call a function on a file in a thread; raise StateError if it fails."""
    try:
        return await asyncio.to_thread(do)
    except OSError as error:
        raise StateError(
            f"The artifact file {path} fails: {error.strerror}.",
            where=str(path),
            status=507 if error.errno in _FULL else 503,
        ) from None


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically: after a crash it is complete or missing."""
    if not path.parent.is_dir():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _sync(path.parent.parent)
    part = path.with_name(path.name + _WRITING)
    try:
        with os.fdopen(os.open(part, _NEW, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(directory: Path) -> None:
    """Flush the names in a directory to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(directory: Path, kept: set[str]) -> None:
    for file in directory.iterdir():
        if _OURS.fullmatch(file.name) and file.name not in kept:
            file.unlink(missing_ok=True)


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
