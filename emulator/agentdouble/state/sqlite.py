"""The store in a SQLite file; import it only if it is configured."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import QueuePool

from agentdouble.errors import StateError
from agentdouble.state.database import LOCK_TIMEOUT_S, PAUSE_S, DatabaseStore, upsert
from agentdouble.state.store import Change

T = TypeVar("T")

_FORMAT = 2


class SqliteStore(DatabaseStore):
    """Records in a file."""

    what = "state file"
    _put = upsert(sqlite)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = Path(path)
        self._descriptor: int | None = None
        # One thread, and not a driver with coroutines: that crosses to its thread for each step of
        # a transaction.
        self._thread: ThreadPoolExecutor | None = None
        self._engine = create_engine(
            URL.create("sqlite", database=path),
            pool_size=1,
            max_overflow=0,
            poolclass=QueuePool,
            connect_args={"timeout": LOCK_TIMEOUT_S},
        )

    async def open(self) -> None:
        """Open and lock the file; raise StateError if we cannot use it."""
        if not self._is_open:
            try:
                await self._in_thread(self._hold)
            except (sqlite3.Error, OSError) as error:
                await self._release()
                raise self._error("cannot be opened", error) from None
        await super().open()

    async def check(self) -> None:
        """Raise StateError if the file was moved or cannot be written."""
        self._check_path()
        await super().check()

    async def _commit(self, changes: Sequence[Change]) -> None:
        self._check_path()
        await super()._commit(changes)

    def _hold(self) -> None:
        """Open and lock the file, which is readable only by its user because it contains keys.

        SQLite's lock belongs to the process, and ends when any code in the process closes the file
        after reading it. This lock does not. Only on Linux does it not conflict with SQLite's.
        """
        with suppress(OSError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        # first, because SQLite's error about a wrong path is clearer
        sqlite3.connect(self._path, timeout=LOCK_TIMEOUT_S).close()
        self._descriptor = os.open(self._path, os.O_RDONLY)
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while sys.platform == "linux":
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise OSError("the file is locked") from None
                time.sleep(PAUSE_S)

    def _check_path(self) -> None:
        """Raise StateError if another file is at the path: its user would be another owner."""
        with suppress(OSError):
            if self._descriptor is not None and os.path.samestat(
                os.fstat(self._descriptor), self._path.stat()
            ):
                return
        raise StateError(
            f"The state file {self.where} was removed or replaced while the double ran. Put "
            "it back where it was, or restart the double with what is there now.",
            where=self.where,
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "agentdouble-state")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _connected(self, work: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._engine.connect() as connection:
                return self._locked(connection, work)

        return await self._in_thread(run)

    def _lock(self, connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA locking_mode = EXCLUSIVE")

    def _prepare(self, connection: Connection) -> None:
        damage = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if damage != "ok":
            raise StateError(f"The state file {self._path} is damaged: {damage}.", where=self.where)
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        if version not in (0, _FORMAT):
            raise StateError(
                f"The state file {self._path} has the format {version}; this version of "
                f"agentdouble reads {_FORMAT}. Use the version that wrote it, or another file.",
                where=self.where,
            )
        super()._prepare(connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {_FORMAT}")

    async def _release(self) -> None:
        if sys.version_info < (3, 11):
            gc.collect()  # a statement that failed keeps the file open while its error is there
        if self._thread is not None:
            await self._in_thread(self._engine.dispose)
            self._thread.shutdown()
            self._thread = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
