"""What the stores in SQLite and PostgreSQL share, through SQLAlchemy.

A database belongs to one double at a time, because a second double would consider the living
sessions of the first one lost. One connection does all the work and holds the lock. If it is lost,
the pool makes another, which takes the lock again. What several callers write at once is one
transaction: the wait for the disk costs as much as the rest of a request.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Executable,
    MetaData,
    Select,
    String,
    Table,
    Text,
    bindparam,
    delete,
    select,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agentdouble.errors import StateError
from agentdouble.state.store import Change, Record, Store

T = TypeVar("T")

RETRY_S = 1.0
LOCK_TIMEOUT_S = 2  # a double that was just killed may still be ending
PAUSE_S = 0.02
_FULL = ("disk is full", "No space left", "quota exceeded")
_PROBE = "probe"
_PROBE_BYTES = 4096

_log = logging.getLogger(__name__)

_metadata = MetaData()
RECORDS = Table(
    "records",
    _metadata,
    Column("kind", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("record", Text, nullable=False),
)
_DELETE = delete(RECORDS).where(
    RECORDS.c.kind == bindparam("of_kind"), RECORDS.c.id == bindparam("of_id")
)


def upsert(dialect: Any) -> Executable:
    """Return a dialect's statement that inserts a record or replaces the one with its name."""
    statement = dialect.insert(RECORDS)
    replaced: Executable = statement.on_conflict_do_update(
        index_elements=[RECORDS.c.kind, RECORDS.c.id],
        set_={"record": statement.excluded.record},
    )
    return replaced


@dataclass
class _Write:
    """The changes of one caller, and the error if they were not written."""

    changes: Sequence[Change]
    is_done: bool = False
    error: Exception | None = None


class DatabaseStore(Store):
    """Records in a database; belongs to one event loop.

    ``what`` is the kind of database in messages, and ``where`` says which one. ``_put`` is its
    statement from ``upsert``.
    """

    what = "state database"
    outlives = True
    _failures: tuple[type[Exception], ...] = (SQLAlchemyError, OSError, asyncio.TimeoutError)
    _put: Executable

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self._writing = asyncio.Lock()
        self._waiting: list[_Write] = []
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
            await self._run("cannot be opened", self._prepare)
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
            select(RECORDS.c.id, RECORDS.c.record).where(RECORDS.c.kind == kind)
        )
        return {row.id: self._decode(row.record) for row in rows}

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return one record as it was last put, or None."""
        queued = self._queued.get((kind, id_))
        if queued is not None:
            return queued.record
        query = select(RECORDS.c.record).where(RECORDS.c.kind == kind, RECORDS.c.id == id_)
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
        """Run work to its end, even if the caller is cancelled; ``close()`` waits for it."""
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
        """Write what is queued, and changes; after a failure, what is queued stays queued.

        The first of several callers writes for all that wait.
        """
        mine = _Write(changes)
        self._waiting.append(mine)
        async with self._writing:
            if not mine.is_done:
                await self._write_together(tuple(self._waiting))
                self._waiting = [write for write in self._waiting if not write.is_done]
        if mine.error is not None:
            raise mine.error

    async def _write_together(self, writes: Sequence[_Write]) -> None:
        queued = dict(self._queued)
        changes = [change for write in writes for change in write.changes]
        error = await self._failure_of((*queued.values(), *changes))
        if error is not None and len(writes) > 1:  # one caller's failure is not another's
            for write in writes:
                await self._write_together([write])
            return
        self._has_failed = isinstance(error, StateError)
        for write in writes:
            write.is_done, write.error = True, error
        if error is None:
            for name, change in queued.items():
                if self._queued.get(name) is change:  # not queued again meanwhile
                    del self._queued[name]

    async def _failure_of(self, changes: Iterable[Change]) -> Exception | None:
        """Write changes, the last one of each record; return why that failed, or None."""
        last = {(change.kind, change.id): change for change in changes}
        try:
            await self._commit([*last.values()])
        except StateError as error:
            # a new error, because the frames of this one keep the statement open
            return StateError(str(error), where=error.where, status=error.status)
        except Exception as error:  # a record that cannot be encoded
            return error
        return None

    def _prepare(self, connection: Connection) -> None:
        """Create what is missing in the database; raise StateError if it is not usable."""
        _metadata.create_all(connection)
        # a first write, so that a missing permission shows at once and not at the first change
        connection.execute(_DELETE, [{"of_kind": _PROBE, "of_id": _PROBE}])

    def _lock(self, connection: Connection) -> None:
        """Lock the database for a new connection; raise a database error if another holds it."""
        raise NotImplementedError

    async def _release(self) -> None:
        """Close every connection."""
        raise NotImplementedError

    async def _connected(self, work: Callable[[Connection], T]) -> T:
        """Return the result of work with the connection, locked before and committed after."""
        raise NotImplementedError

    async def _run(self, failure: str, work: Callable[[Connection], T]) -> T:
        """Return the result of work with the connection; raise StateError, with the ``failure``."""
        try:
            return await self._connected(work)
        except self._failures as caught:
            error = self._error(failure, caught)
        # Raised here without the database's error, because that would keep its statement open.
        raise error

    def _locked(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        if not connection.info.get("locked"):
            self._lock(connection)
            connection.info["locked"] = True
        result = work(connection)
        connection.commit()
        return result

    async def _fetch(self, query: Select[Any]) -> Sequence[Any]:
        """Return the rows of a query; finish it even if the caller is cancelled.

        A query that is cancelled would end its connection, and the lock with it.
        """
        fetching = self._run("cannot be read", lambda connection: connection.execute(query).all())
        return await self._unbroken(fetching)

    async def _commit(self, changes: Sequence[Change]) -> None:
        """Write changes in one transaction; raise StateError if they are not written."""
        gone = [
            {"of_kind": change.kind, "of_id": change.id}
            for change in changes
            if change.record is None
        ]
        new = [
            {"kind": change.kind, "id": change.id, "record": json.dumps(change.record)}
            for change in changes
            if change.record is not None
        ]

        def write(connection: Connection) -> None:
            if gone:
                connection.execute(_DELETE, gone)
            if new:
                connection.execute(self._put, new)

        await self._run("cannot be written", write)

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
