"""The store of records: its protocol, the one in memory, and which URL gives which.

Who owns records keeps them in memory and answers from there, except for what is large. It
changes memory, and in the same step queues in the store what it changed, with what takes that
back: so no step waits between a decision and its record, and many changes are written together.
When the store has answered, they cannot be lost any more, or are taken back.
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

    ``directory`` is where its owners may keep files beside the records, made when it is needed;
    None where there is no place for files.
    """

    directory: Path | None

    async def open(self) -> None:
        """Make the store ready; raise StateError if it cannot be used. Once is enough."""

    async def load(self, kind: str) -> Mapping[str, Record]:
        """Return every saved record of a kind by its id."""

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return one record as it was last put, or None."""

    def write(
        self, changes: Iterable[Change], undo: Undo, about: Iterable[Hashable] = ()
    ) -> Awaitable[None]:
        """Queue changes; what is returned waits until they are kept, all of them together.

        Where they cannot be, it calls ``undo``, which takes them back in memory, and raises
        StateError; nobody need wait for that. Later changes of the same records are refused with
        them and taken back before them. ``about`` are names of what else they build upon.
        """

    def put(self, kind: str, id_: str, record: Record) -> None:
        """Queue a record that nobody can take back: it is tried again until it is kept."""

    def delete(self, kind: str, id_: str) -> None:
        """Queue the removal of a record, as ``put``; one that is not there is no error."""

    async def saved(self) -> None:
        """Return when everything that was queued before is kept; raise StateError if it cannot."""

    async def settled(self, name: Hashable) -> None:
        """Return when no change is under way of a record ``(kind, id)``, whatever came of it."""

    async def check(self) -> None:
        """Raise StateError, soon, if the store could not keep anything now."""

    async def close(self) -> None:
        """Keep what is queued and let go of the store; what cannot be kept is logged."""


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
        """Keep changes."""
        for one in changes:
            if one.record is None:
                self.delete(one.kind, one.id)
            else:
                self.put(one.kind, one.id, one.record)
        return self.saved()

    def put(self, kind: str, id_: str, record: Record) -> None:
        """Keep a record."""
        self._records.setdefault(kind, {})[id_] = record

    def delete(self, kind: str, id_: str) -> None:
        """Forget a record."""
        self._records.get(kind, {}).pop(id_, None)

    async def saved(self) -> None:
        """Do nothing: what is queued is kept."""

    async def settled(self, name: Hashable) -> None:
        """Do nothing: nothing is under way."""

    async def check(self) -> None:
        """Do nothing: memory is ready."""

    async def close(self) -> None:
        """Forget everything."""
        self._records.clear()


def make_store(url: str) -> Store:
    """Return the store of a URL: ``memory``, ``sqlite:///file`` or ``postgresql://...``.

    ``sqlite:///a.db`` is a file in the working directory, ``sqlite:////tmp/a.db`` an absolute
    one. Raises StateError for another URL, MissingExtraError for PostgreSQL without its extra.
    """
    name = check_url(url)
    if name is None:
        return MemoryStore()
    if name.startswith(_POSTGRESQL):
        if importlib.util.find_spec("asyncpg") is None:
            raise MissingExtraError("A state in PostgreSQL", extra="postgres")
        import_now("agentdouble.state.postgresql")
        from agentdouble.state.postgresql import PostgresqlStore

        return PostgresqlStore(name)
    import_now("agentdouble.state.sqlite")
    from agentdouble.state.sqlite import SqliteStore  # SQLAlchemy, only where it is asked for

    return SqliteStore(name)


def check_url(url: str) -> str | None:
    """Return the file or the server that a URL names, None for memory; raise StateError."""
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
