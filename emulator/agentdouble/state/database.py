"""The store in SQLite or PostgreSQL, through SQLAlchemy; import it only if it is configured.

A database belongs to one double at a time, because a second double would consider the living
sessions of the first one lost. One connection does all the work and holds the lock. If it is lost,
the pool makes another, which takes the lock again.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import json
import logging
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    Column,
    MetaData,
    Select,
    String,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.schema import CreateSchema

from agentdouble.errors import StateError
from agentdouble.state.store import Change, Record, Store

T = TypeVar("T")

SCHEMA = "agentdouble"  # in PostgreSQL
LOCK = 0x6167656E74  # "agent": the double's advisory lock in PostgreSQL
ANSWER_S = 10.0  # a server that does not answer for so long counts as lost
_CHECK_S = 2.0
_LOCK_TIMEOUT_S = 2  # a double that was just killed may still be ending
_PAUSE_S = 0.02
RETRY_S = 1.0
_FORMAT = 2  # of an SQLite file
_FULL = ("disk is full", "No space left", "quota exceeded")
_PROBE = "probe"
_OWNER = "owner"  # the double that opened the database last
_KEEPALIVE = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}
_PROBE_BYTES = 4096

_log = logging.getLogger(__name__)

_metadata = MetaData()
_records = Table(
    "records",
    _metadata,
    Column("kind", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("record", Text, nullable=False),
)
_DELETE = delete(_records).where(
    _records.c.kind == bindparam("of_kind"), _records.c.id == bindparam("of_id")
)


class DatabaseStore(Store):
    """Records in a database; belongs to one event loop.

    ``what`` is the kind of database in messages, and ``where`` says which one.
    """

    what = "state database"
    outlives = True
    _failures: tuple[type[Exception], ...] = (SQLAlchemyError, OSError, asyncio.TimeoutError)

    def __init__(self, where: str, url: URL, **options: Any) -> None:
        super().__init__()
        self.where = where
        self._engine = create_async_engine(url, pool_size=1, max_overflow=0, **options)
        self._writing = asyncio.Lock()
        self._queued: dict[tuple[str, str], Change] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._running: set[asyncio.Future[Any]] = set()
        self._has_failed = False
        self._is_open = False

    async def open(self) -> None:
        """Prepare and lock the database; raise StateError if we cannot use it."""
        if self._is_open:
            return
        try:
            async with self._connected("cannot be opened") as connection:
                await self._prepare(connection)
                await connection.commit()
        except BaseException:
            await self._release()
            raise
        self._is_open = True

    async def close(self) -> None:
        """Write what is queued and release the database; log what cannot be kept."""
        if self._flushing is not None:
            self._flushing.cancel()
        # Work of cancelled callers: dispose() would leave the connection that it uses open.
        while self._running:
            await asyncio.wait(self._running)
        if self._is_open:
            try:
                await self.saved()
            except StateError as error:
                lost = ", ".join(" ".join(name) for name in self._queued)
                _log.error("The state is closed without the last of: %s. %s", lost, error)
            self._is_open = False
        await self._release()

    async def load(self, kind: str) -> Mapping[str, Record]:
        """Return all saved records of a kind by id."""
        rows = await self._fetch(
            select(_records.c.id, _records.c.record).where(_records.c.kind == kind)
        )
        return {row.id: self._decode(row.record) for row in rows}

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return one record as it was last put, or None."""
        queued = self._queued.get((kind, id_))
        if queued is not None:
            return queued.record
        query = select(_records.c.record).where(_records.c.kind == kind, _records.c.id == id_)
        rows = await self._fetch(query)
        return self._decode(rows[0].record) if rows else None

    async def write(self, *changes: Change) -> None:
        """Write changes in one transaction, even if the caller is cancelled meanwhile."""
        if changes:
            await self._unbroken(self._write(changes))

    def put(self, change: Change) -> None:
        """Queue a change; the write is repeated until it succeeds."""
        self._queued[change.kind, change.id] = change
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush())

    async def saved(self) -> None:
        """Return when everything that was queued is in the database; raise StateError if not."""
        if self._queued:
            await self._unbroken(self._write(()))

    async def check(self) -> None:
        """Raise StateError if nothing can be written now; try a write if the last one failed."""
        if self._has_failed:
            await self.write(Change(_PROBE, _PROBE, {"text": "x" * _PROBE_BYTES}))
            await self.write(Change(_PROBE, _PROBE))

    async def _unbroken(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end, even if the caller is cancelled meanwhile; ``close()`` waits for it."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _flush(self) -> None:
        while self._queued:
            with suppress(StateError):
                await self.saved()
                continue
            await asyncio.sleep(RETRY_S)  # outside the except: its error keeps the statement open

    async def _write(self, changes: Sequence[Change]) -> None:
        """Write what is queued, and changes; after a failure, what is queued stays queued."""
        async with self._writing:
            queued, error = dict(self._queued), None
            written = {**queued, **{(change.kind, change.id): change for change in changes}}
            try:
                await self._commit([*written.values()])
            except StateError as caught:
                error = StateError(str(caught), where=caught.where, status=caught.status)
            self._has_failed = error is not None
            # a new error, because the frames of the other one keep the statement open
            if error is not None:
                raise error
            for name, change in queued.items():
                if self._queued.get(name) is change:  # not queued again meanwhile
                    del self._queued[name]

    async def _prepare(self, connection: AsyncConnection) -> None:
        """Create what is missing in the database; raise StateError if it is not usable."""
        await connection.run_sync(_metadata.create_all)
        # a first write, so that a missing permission shows at once and not at the first change
        await connection.execute(_DELETE, [{"of_kind": _PROBE, "of_id": _PROBE}])

    async def _lock(self, connection: AsyncConnection) -> None:
        """Lock the database for a new connection; raise a database error if another holds it."""
        raise NotImplementedError

    async def _release(self) -> None:
        await self._engine.dispose()

    @asynccontextmanager
    async def _connected(self, failure: str) -> AsyncIterator[AsyncConnection]:
        """Yield the locked connection; raise StateError, which names the ``failure``."""
        error: StateError | None = None
        try:
            async with self._engine.connect() as connection:
                info = (await connection.get_raw_connection()).info
                if not info.get("locked"):
                    await self._lock(connection)
                    info["locked"] = True
                yield connection
        except self._failures as caught:
            error = self._error(failure, caught)
        # Raised here without the database's error, because that would keep its statement open.
        if error is not None:
            raise error

    async def _fetch(self, query: Select[Any]) -> Sequence[Any]:
        """Return the rows of a query; finish it even if the caller is cancelled.

        A query that is cancelled would end its connection, and the lock with it.
        """

        async def fetch() -> Sequence[Any]:
            async with self._connected("cannot be read") as connection:
                rows: Sequence[Any] = (await connection.execute(query)).all()
                return rows

        return await self._unbroken(fetch())

    async def _commit(self, changes: Sequence[Change]) -> None:
        """Write changes in one transaction; raise StateError if they are not written."""
        names = [{"of_kind": change.kind, "of_id": change.id} for change in changes]
        new = [
            {"kind": change.kind, "id": change.id, "record": json.dumps(change.record)}
            for change in changes
            if change.record is not None
        ]
        async with self._connected("cannot be written") as connection:
            if names:
                await connection.execute(_DELETE, names)
            if new:
                await connection.execute(insert(_records), new)
            await connection.commit()

    def _decode(self, record: str) -> Record:
        try:
            decoded: Record = json.loads(record)
        except ValueError as error:
            raise self._error("cannot be read", error) from None
        return decoded

    def _error(self, failure: str, error: BaseException) -> StateError:
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        reason = (reason or type(error).__name__).rstrip(".")
        hint = " Another double uses it." if "lock" in reason else ""
        return StateError(
            f"The {self.what} {self.where} {failure}: {reason}.{hint}",
            where=self.where,
            status=507 if any(words in reason for words in _FULL) else 503,
        )


class SqliteStore(DatabaseStore):
    """Records in a file."""

    what = "state file"

    def __init__(self, path: str) -> None:
        super().__init__(
            path,
            URL.create("sqlite+aiosqlite", database=path),
            connect_args={"timeout": _LOCK_TIMEOUT_S},
        )
        self._path = Path(path)
        self._descriptor: int | None = None

    async def open(self) -> None:
        """Open and lock the file; raise StateError if we cannot use it."""
        if not self._is_open:
            try:
                await asyncio.to_thread(self._hold)
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
        with suppress(OSError):  # SQLite's error about a wrong path is clearer
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        # aiosqlite leaves a thread behind if it cannot open the file
        sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_S).close()
        self._descriptor = os.open(self._path, os.O_RDONLY)
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while sys.platform == "linux":
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise OSError("the file is locked") from None
                time.sleep(_PAUSE_S)

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

    async def _lock(self, connection: AsyncConnection) -> None:
        await connection.exec_driver_sql("PRAGMA locking_mode = EXCLUSIVE")

    async def _prepare(self, connection: AsyncConnection) -> None:
        damage = (await connection.exec_driver_sql("PRAGMA quick_check(1)")).scalar_one()
        if damage != "ok":
            raise StateError(f"The state file {self._path} is damaged: {damage}.", where=self.where)
        version = (await connection.exec_driver_sql("PRAGMA user_version")).scalar_one()
        if version not in (0, _FORMAT):
            raise StateError(
                f"The state file {self._path} has the format {version}; this version of "
                f"agentdouble reads {_FORMAT}. Use the version that wrote it, or another file.",
                where=self.where,
            )
        await super()._prepare(connection)
        await connection.exec_driver_sql(f"PRAGMA user_version = {_FORMAT}")

    async def _release(self) -> None:
        if sys.version_info < (3, 11):
            gc.collect()  # a statement that failed keeps the file open while its error is there
        await super()._release()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class PostgresqlStore(DatabaseStore):
    """Records in a schema of their own; raises StateError for a URL that cannot be read."""

    def __init__(self, url: str) -> None:
        from asyncpg import PostgresError  # optional: asyncpg

        # SQLAlchemy wraps the driver's errors, but not all while it connects
        self._failures = (*self._failures, PostgresError)
        try:
            parsed = make_url(url).set(drivername="postgresql+asyncpg")
        except (ArgumentError, ValueError) as error:
            raise StateError(f"Invalid database URL: {error}", where="postgresql") from None
        self._name = secrets.token_hex(8)
        self._successor: str | None = None
        super().__init__(
            parsed.set(drivername="postgresql").render_as_string(hide_password=True),
            parsed,
            pool_pre_ping=True,
            pool_timeout=ANSWER_S,
            connect_args={
                "timeout": ANSWER_S,
                "command_timeout": ANSWER_S,
                "server_settings": _KEEPALIVE,  # the lock of a machine that is gone is released
            },
            execution_options={"schema_translate_map": {None: SCHEMA}},
        )

    async def wait(self, report: Callable[[str], None]) -> None:
        """Open the database as soon as no other double has it and the server answers."""
        while True:
            try:
                return await self.open()
            except StateError as error:
                report(str(error))
            await asyncio.sleep(_PAUSE_S)

    async def replaced(self) -> str:
        """Wait until another double has the database, which may have changed our records."""
        while self._successor is None:
            await asyncio.sleep(RETRY_S)
            with suppress(StateError):
                await self.check()
        return self._successor

    async def check(self) -> None:
        """Raise StateError if the server does not answer or the last write failed."""
        try:
            await asyncio.wait_for(self._fetch(select(_records.c.id).limit(1)), _CHECK_S)
        except asyncio.TimeoutError:
            raise self._error("does not answer", OSError(f"no answer in {_CHECK_S:g} s")) from None
        await super().check()

    async def _lock(self, connection: AsyncConnection) -> None:
        await self._check_owner(connection)  # before waiting for a lock that the other one keeps
        await connection.execute(text(f"SET lock_timeout = '{_LOCK_TIMEOUT_S}s'"))
        await connection.execute(text(f"SELECT pg_advisory_lock({LOCK})"))
        await connection.commit()
        await self._check_owner(connection)

    async def _check_owner(self, connection: AsyncConnection) -> None:
        """Raise StateError if another double had the database since we opened it."""
        if not self._is_open:
            return
        query = select(_records.c.id).where(_records.c.kind == _OWNER)
        if (await connection.execute(query)).scalar_one_or_none() != self._name:
            self._successor = (
                f"Another double has taken over the {self.what} {self.where}, while this one had "
                "lost its connection. Its sessions and changes are not in force there."
            )
            await connection.invalidate()  # this also releases the lock
            raise StateError(self._successor, where=self.where)
        await connection.commit()

    async def _prepare(self, connection: AsyncConnection) -> None:
        if not await connection.run_sync(lambda sync: inspect(sync).has_schema(SCHEMA)):
            await connection.execute(CreateSchema(SCHEMA))
        await super()._prepare(connection)
        await connection.execute(delete(_records).where(_records.c.kind == _OWNER))
        await connection.execute(
            insert(_records), [{"kind": _OWNER, "id": self._name, "record": "{}"}]
        )
