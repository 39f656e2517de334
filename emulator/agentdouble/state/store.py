"""The protocol of a store, the store in memory, and the function that makes a store from a URL.

The owner of records keeps them in memory and reads them there, except large ones. It changes
memory, and in the same step queues the change in the store with a function that undoes it. So no
step waits between a decision and its record, and many changes are written together. When the store
has answered, the changes cannot be lost any more, or have been undone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from agentdouble.errors import MissingExtraError, StateError
from agentdouble.imports import import_now
from agentdouble.state.changes import Change, Record, Undo

MEMORY = "memory"
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql://"


class Store(Protocol):
    """Records by kind and id; each is a JSON object.

    ``directory`` is where the owners of records may keep files in addition, made when needed, or
    None if there is no place for files.
    """

    directory: Path | None

    async def open(self) -> None:
        """Make the store ready; raise StateError if it cannot be used. Later calls do nothing."""

    async def load(self, kind: str) -> Mapping[str, Record]:
        """Return all saved records of a kind by id."""

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return one record as it was last put, or None."""

    def write(
        self, changes: Iterable[Change], undo: Undo, about: Iterable[Hashable] = ()
    ) -> Awaitable[None]:
        """Queue changes; the returned awaitable waits until all of them are kept together.

        If they cannot be kept, the store calls ``undo``, which undoes them in memory, and raises
        StateError, even if no caller waits. Later changes of the same records are refused too, and
        undone before these. ``about`` are names of other things that the changes depend on.
        """

    def put(self, kind: str, id_: str, record: Record) -> None:
        """Queue a record that cannot be undone; the write is repeated until it succeeds."""

    def delete(self, kind: str, id_: str) -> None:
        """Queue the removal of a record, as ``put`` does; a missing record is not an error."""

    async def saved(self) -> None:
        """Return when everything that was queued before is kept; raise StateError if it cannot."""

    async def settled(self, name: Hashable) -> None:
        """Return when no change of a record ``(kind, id)`` is pending, whether it failed or not."""

    async def check(self) -> None:
        """Raise StateError, without long waiting, if the store cannot keep anything now."""

    async def close(self) -> None:
        """Write all queued changes and release the store; log changes that cannot be kept."""


class MemoryStore:
    """A store that ends with its process."""

    directory: Path | None = None

    def __init__(self) -> None:
        self._records: dict[str, dict[str, Record]] = {}

    async def open(self) -> None:
        """Do nothing: memory is ready."""

    async def load(self, kind: str) -> Mapping[str, Record]:
        """Return the records of a kind."""
        return dict(self._records.get(kind, {}))

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return a record, or None."""
        return self._records.get(kind, {}).get(id_)

    def write(
        self, changes: Iterable[Change], undo: Undo, about: Iterable[Hashable] = ()
    ) -> Awaitable[None]:
        """Keep the changes."""
        for change in changes:
            if change.record is None:
                self.delete(change.kind, change.id)
            else:
                self.put(change.kind, change.id, change.record)
        return self.saved()

    def put(self, kind: str, id_: str, record: Record) -> None:
        """Keep a record."""
        self._records.setdefault(kind, {})[id_] = record

    def delete(self, kind: str, id_: str) -> None:
        """Remove a record."""
        self._records.get(kind, {}).pop(id_, None)

    async def saved(self) -> None:
        """Do nothing: changes are kept at once."""

    async def settled(self, name: Hashable) -> None:
        """Do nothing: no change is ever pending."""

    async def check(self) -> None:
        """Do nothing: memory is ready."""

    async def close(self) -> None:
        """Remove everything."""
        self._records.clear()


def make_store(url: str) -> Store:
    """Return the store of a URL: ``memory``, ``sqlite:///file`` or ``postgresql://...``.

    ``sqlite:///a.db`` is a file in the working directory, ``sqlite:////tmp/a.db`` an absolute
    path. Raises StateError for another URL, and MissingExtraError for PostgreSQL without its
    extra.
    """
    name = check_url(url)
    if name is None:
        return MemoryStore()
    if name.startswith(_POSTGRESQL) and importlib.util.find_spec("asyncpg") is None:
        raise MissingExtraError("A state in PostgreSQL", extra="postgres")
    import_now("agentdouble.state.database")
    from agentdouble.state.database import PostgresqlStore, SqliteStore  # SQLAlchemy takes 0.3 s

    return PostgresqlStore(name) if name.startswith(_POSTGRESQL) else SqliteStore(name)


def check_url(url: str) -> str | None:
    """Return the file or the server of a URL, or None for memory; raise StateError."""
    if url == MEMORY:
        return None
    if url.startswith(_POSTGRESQL) and len(url) > len(_POSTGRESQL):
        return url
    path = url.removeprefix(_SQLITE)
    if path != url and path and not path.startswith((":memory:", "file:")) and "?" not in path:
        return path
    scheme = url.partition(":")[0]
    if scheme.startswith("postgres"):  # the URL may hold a password
        raise StateError(
            "PostgreSQL is named by postgresql://USER:PASSWORD@HOST/DATABASE.", where=scheme
        )
    raise StateError(
        f"{url!r} names no state. It is 'memory', 'sqlite:///FILE' (with four slashes for an "
        "absolute path), without options, or 'postgresql://USER:PASSWORD@HOST/DATABASE'.",
        where=url,
    )
