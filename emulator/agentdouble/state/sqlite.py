"""The store in an SQLite file, through SQLAlchemy; import it only if it is configured.

The file belongs to one double at a time. It is locked while it is open, because a second double
would consider the living sessions of the first one lost.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, MetaData, Select, bindparam, delete, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from agentdouble.errors import StateError
from agentdouble.state import writing
from agentdouble.state.held_file import HeldFile
from agentdouble.state.sql import SqlStore, records_of

_FORMAT = 1
_LOCK_TIMEOUT_S = 2  # a double that was just killed may still be ending

_metadata = MetaData()
_records = records_of(_metadata)
_DELETE = delete(_records).where(
    _records.c.kind == bindparam("of_kind"), _records.c.id == bindparam("of_id")
)


class SqliteStore(SqlStore):
    """Records in a file; belongs to one event loop."""

    what = "state file"

    def __init__(self, path: str) -> None:
        super().__init__(path, _records)
        self._path = Path(path)
        self._file = HeldFile(self._path)
        self.directory = self._path.with_name(self._path.name + ".artifacts")
        self._engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=path),
            poolclass=NullPool,
            connect_args={"timeout": _LOCK_TIMEOUT_S},
        )
        self._connection: AsyncConnection | None = None
        self._using = asyncio.Lock()  # one connection does one thing at a time

    async def open(self) -> None:
        """Open and lock the file; raise StateError if we cannot use it."""
        if self._connection is not None:
            return
        try:
            await asyncio.to_thread(self._touch)
        except (sqlite3.Error, OSError) as error:
            self._file.release()
            raise self._error("cannot be opened", error) from None
        connection = await self._engine.connect()
        try:
            await self._prepare(connection)
        except BaseException as error:
            await connection.close()
            self._file.release()
            if isinstance(error, DBAPIError):
                raise self._error("cannot be used", error) from None
            raise
        self._connection = connection

    async def close(self) -> None:
        """Write all queued changes and release the file."""
        if self._connection is None:
            return
        await self._writing.close()
        if sys.version_info < (3, 11):
            gc.collect()  # a statement that failed keeps the file open while its error is there
        await self._connection.close()
        self._connection = None
        self._file.release()
        await self._engine.dispose()

    async def check(self) -> None:
        """Raise StateError if the file was moved or cannot be written."""
        self._check_place()
        await super().check()

    def _touch(self) -> None:
        """Open the file once, because aiosqlite leaves a thread behind if it cannot open it."""
        self._file.make()
        sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_S).close()
        self._file.hold(_LOCK_TIMEOUT_S)

    async def _prepare(self, connection: AsyncConnection) -> None:
        await connection.exec_driver_sql("PRAGMA locking_mode = EXCLUSIVE")
        found = await connection.exec_driver_sql("PRAGMA quick_check(1)")
        damage = found.scalar_one()
        version = (await connection.exec_driver_sql("PRAGMA user_version")).scalar_one()
        if damage != "ok":
            raise StateError(f"The state file {self._path} is damaged: {damage}.", where=self.where)
        if version not in (0, _FORMAT):
            raise StateError(
                f"The state file {self._path} has the format {version}; this version of "
                f"agentdouble reads {_FORMAT}. Use the version that wrote it, or another file.",
                where=self.where,
            )
        await connection.run_sync(_metadata.create_all)
        await connection.exec_driver_sql(f"PRAGMA user_version = {_FORMAT}")  # takes the lock
        await connection.commit()

    async def _fetch(self, query: Select[Any]) -> Sequence[Any]:
        async with self._using:
            try:
                rows: Sequence[Any] = (await self._open.execute(query)).all()
                await self._open.rollback()
            except DBAPIError as error:
                raise self._error("cannot be read", error) from None
        return rows

    async def _commit(self, rows: Sequence[writing.Row]) -> None:
        async with self._using:
            self._check_place()
            failure = await self._try(self._open, rows)
        # Raised here without the database's error, because that would keep its statement open.
        if failure is not None:
            raise failure

    async def _try(
        self, connection: AsyncConnection, rows: Sequence[writing.Row]
    ) -> StateError | None:
        try:
            await _execute(connection, rows)
            await connection.commit()
        except Exception as error:
            with suppress(DBAPIError):  # SQLite may have rolled back by itself
                await connection.rollback()
            return self._error("cannot be written", error)
        return None

    @property
    def _open(self) -> AsyncConnection:
        if self._connection is None:
            raise StateError(f"The state file {self.where} is not open.", where=self.where)
        return self._connection

    def _check_place(self) -> None:
        """Raise StateError if another file is at the path: its user would be another owner."""
        if not self._file.is_there():
            raise StateError(
                f"The state file {self.where} was removed or replaced while the double ran. Put "
                "it back where it was, or restart the double with what is there now.",
                where=self.where,
            )


async def _execute(connection: AsyncConnection, rows: Sequence[writing.Row]) -> None:
    named = [{"of_kind": row.kind, "of_id": row.id} for row in rows]
    await connection.execute(_DELETE, named)
    new = [
        {"kind": row.kind, "id": row.id, "record": row.record}
        for row in rows
        if row.record is not None
    ]
    if new:
        await connection.execute(insert(_records), new)
