"""What the stores in SQL have in common: one table of records, changes written in bulk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    Column,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from agentdouble.errors import StateError
from agentdouble.state.store import Record

metadata = MetaData()
_records = Table(
    "records",
    metadata,
    Column("kind", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("record", Text, nullable=False),
)
_DELETE = delete(_records).where(
    _records.c.kind == bindparam("of_kind"), _records.c.id == bindparam("of_id")
)


@dataclass(frozen=True)
class _Change:
    kind: str
    id: str
    record: str | None


class SqlStore:
    """Records in a database; belongs to one event loop. ``open()`` is each database's own.

    ``what`` names the database in messages, ``where`` says which.
    """

    what = "state"
    directory: Path | None = None

    def __init__(self, engine: AsyncEngine, where: str) -> None:
        self.where = where
        self._engine = engine
        self._connection: AsyncConnection | None = None
        self._queued: list[_Change] = []
        self._writing = asyncio.Lock()

    async def load(self, kind: str) -> Mapping[str, Record]:
        """Return every saved record of a kind by its id."""
        query = select(_records.c.id, _records.c.record).where(_records.c.kind == kind)
        try:
            rows = (await self._open.execute(query)).all()
            await self._open.rollback()
            return {id_: json.loads(text) for id_, text in rows}
        except (DBAPIError, ValueError) as error:
            raise self._error("cannot be read", error) from None

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return one record as it was last put, or None."""
        await self.saved()
        query = select(_records.c.record).where(_records.c.kind == kind, _records.c.id == id_)
        async with self._writing:  # one connection does one thing at a time
            try:
                text = (await self._open.execute(query)).scalar_one_or_none()
                await self._open.rollback()
                return None if text is None else json.loads(text)
            except (DBAPIError, ValueError) as error:
                raise self._error("cannot be read", error) from None

    def put(self, kind: str, id_: str, record: Record) -> None:
        """Queue a record; it takes the place of the one with its kind and id."""
        self._queued.append(_Change(kind, id_, json.dumps(record)))

    def delete(self, kind: str, id_: str) -> None:
        """Queue the removal of a record; one that is not there is no error."""
        self._queued.append(_Change(kind, id_, None))

    async def saved(self) -> None:
        """Return when everything that was queued before is in the database."""
        if self._queued or self._writing.locked():
            # a caller that goes away must not break off the write of all the others
            await asyncio.shield(asyncio.ensure_future(self._write()))

    async def close(self) -> None:
        """Write what is queued and let go of the database."""
        if self._connection is None:
            return
        try:
            await self._write()
        finally:
            await self._connection.close()
            self._connection = None
            await self._engine.dispose()

    @property
    def _open(self) -> AsyncConnection:
        if self._connection is None:
            raise StateError(f"The {self.what} {self.where} is not open.", where=self.where)
        return self._connection

    async def _write(self) -> None:
        async with self._writing:
            changes, self._queued = self._queued, []
            if not changes:
                return
            try:
                await self._commit(changes)
            except BaseException as error:
                self._queued = changes + self._queued  # the next caller tries once more
                if isinstance(error, DBAPIError):
                    raise self._error("cannot be written", error) from None
                raise

    async def _commit(self, changes: Sequence[_Change]) -> None:
        connection = self._open
        last = {(change.kind, change.id): change for change in changes}.values()
        try:
            named = [{"of_kind": change.kind, "of_id": change.id} for change in last]
            await connection.execute(_DELETE, named)
            new = [
                {"kind": change.kind, "id": change.id, "record": change.record}
                for change in last
                if change.record is not None
            ]
            if new:
                await connection.execute(insert(_records), new)
            await connection.commit()
        except BaseException:
            await connection.rollback()
            raise

    def _error(self, what: str, error: Exception) -> StateError:
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        hint = " Another double uses it." if "lock" in reason else ""
        return StateError(f"The {self.what} {self.where} {what}: {reason}.{hint}", where=self.where)
