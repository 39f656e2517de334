"""The common part of the stores in SQL: one table of records, changes written in bulk."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Column, MetaData, Select, String, Table, Text, select
from sqlalchemy.exc import DBAPIError

from agentdouble.errors import StateError
from agentdouble.state import writing
from agentdouble.state.changes import Change, Record, Undo, unbroken

_FULL = ("disk is full", "No space left", "quota exceeded")
_PROBE = "probe"
_ROOM = 4096


def records_of(metadata: MetaData) -> Table:
    """Return the table of records, in the schema of its metadata."""
    return Table(
        "records",
        metadata,
        Column("kind", String, primary_key=True),
        Column("id", String, primary_key=True),
        Column("record", Text, nullable=False),
    )


class SqlStore(ABC):
    """Records in a database; belongs to one event loop.

    ``what`` is the kind of database in messages, and ``where`` says which one.
    """

    what = "state"
    directory: Path | None = None

    def __init__(self, where: str, records: Table) -> None:
        self.where = where
        self._records = records
        self._writing = writing.Writing(self._commit)

    async def load(self, kind: str) -> Mapping[str, Record]:
        """Return all saved records of a kind by id."""
        table = self._records.c
        rows = await self._found(select(table.id, table.record).where(table.kind == kind))
        return {row.id: self._read(row.record) for row in rows}

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return one record as it was last put, or None."""
        await self._writing.settled((kind, id_))
        table = self._records.c
        query = select(table.record).where(table.kind == kind, table.id == id_)
        rows = await self._found(query)
        return self._read(rows[0].record) if rows else None

    def write(
        self, changes: Iterable[Change], undo: Undo, about: Iterable[Hashable] = ()
    ) -> Awaitable[None]:
        """Queue changes that are written together or undone by ``undo``."""
        rows = _rows(changes)
        return _answered(self._writing.add(rows, undo, about) if rows else None)

    def put(self, kind: str, id_: str, record: Record) -> None:
        """Queue a record that cannot be undone; it is kept until it is written."""
        self._writing.add(_rows([Change(kind, id_, record)]), None, ())

    def delete(self, kind: str, id_: str) -> None:
        """Queue the removal of a record, as ``put`` does; a missing record is not an error."""
        self._writing.add(_rows([Change(kind, id_)]), None, ())

    async def saved(self) -> None:
        """Return when everything that was queued before is in the database."""
        await self._writing.saved()

    async def settled(self, name: Hashable) -> None:
        """Return when no change of that name is pending, whether it succeeded or failed."""
        await self._writing.settled(name)

    async def check(self) -> None:
        """Raise StateError if nothing can be written now; try a write if the last one failed."""
        if self._writing.failure is not None:
            room = {"text": "x" * _ROOM}
            await unbroken(self._commit(_rows([Change(_PROBE, _PROBE, room)])))
            await unbroken(self._commit(_rows([Change(_PROBE, _PROBE)])))
            self._writing.failure = None

    @abstractmethod
    async def open(self) -> None:
        """Make the database ready; raise StateError if we cannot use it."""

    @abstractmethod
    async def close(self) -> None:
        """Write all queued changes and release the database."""

    @abstractmethod
    async def _commit(self, rows: Sequence[writing.Row]) -> None:
        """Write rows in one transaction; raise StateError if they are not written."""

    @abstractmethod
    async def _fetch(self, query: Select[Any]) -> Sequence[Any]:
        """Return the rows of a query; raise StateError if it fails."""

    async def _found(self, query: Select[Any]) -> Sequence[Any]:
        """Return the rows of a query, and finish it even if the caller is cancelled."""
        # a query that is broken off would end its connection
        return await unbroken(self._fetch(query))

    def _read(self, text: str) -> Record:
        try:
            record: Record = json.loads(text)
        except ValueError as error:
            raise self._error("cannot be read", error) from None
        return record

    def _error(self, what: str, error: BaseException) -> StateError:
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        reason = (reason or type(error).__name__).rstrip(".")
        hint = " Another double uses it." if "lock" in reason else ""
        return StateError(
            f"The {self.what} {self.where} {what}: {reason}.{hint}",
            where=self.where,
            status=507 if any(full in reason for full in _FULL) else 503,
        )


def _rows(changes: Iterable[Change]) -> list[writing.Row]:
    return [
        writing.Row(one.kind, one.id, None if one.record is None else json.dumps(one.record))
        for one in changes
    ]


async def _answered(changes: writing.Changes | None) -> None:
    if changes is not None:
        await unbroken(changes.done)
