"""The store in an SQLite file, through SQLAlchemy; import it only where such a state is asked for.

The file belongs to one double at a time: it is locked as long as it is open, because a second
one would take the first one's living sessions for lost.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from sqlalchemy import (
    URL,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from agentdouble.errors import StateError
from agentdouble.state.sql import SqlStore, metadata

_FORMAT = 1
_LOCK_TIMEOUT_S = 2  # one that was killed a moment ago may still be going


class SqliteStore(SqlStore):
    """Records in a file; belongs to one event loop."""

    what = "state file"

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.directory = self._path.with_name(self._path.name + ".artifacts")
        url = URL.create("sqlite+aiosqlite", database=str(self._path))
        engine = create_async_engine(
            url, poolclass=NullPool, connect_args={"timeout": _LOCK_TIMEOUT_S}
        )
        super().__init__(engine, str(self._path))

    async def open(self) -> None:
        """Open and lock the file; raise StateError if it is not ours to use."""
        if self._connection is not None:
            return
        try:
            await asyncio.to_thread(self._touch)
        except sqlite3.Error as error:
            raise self._error("cannot be opened", error) from None
        connection = await self._engine.connect()
        try:
            await self._prepare(connection)
        except DBAPIError as error:
            await connection.close()
            raise self._error("cannot be used", error) from None
        except BaseException:
            await connection.close()
            raise
        self._connection = connection

    def _touch(self) -> None:
        """Open the file once: aiosqlite leaves a thread to its fate when it cannot open one.

        A file that is made here is its user's alone, for it holds keys.
        """
        with suppress(OSError):  # SQLite says what is wrong with a path in better words
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_S).close()

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
        await connection.run_sync(metadata.create_all)
        await connection.exec_driver_sql(f"PRAGMA user_version = {_FORMAT}")  # takes the lock
        await connection.commit()
