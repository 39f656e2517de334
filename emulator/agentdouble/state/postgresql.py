"""The store in PostgreSQL, through SQLAlchemy and asyncpg; import it only if it is configured.

The records have their own schema, ``agentdouble``, which belongs to one double at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from agentdouble.errors import StateError
from agentdouble.state import link, owning, writing
from agentdouble.state.link import Link, LostError
from agentdouble.state.sql import SqlStore

_LOCK_TIMEOUT_S = 2  # a double that was just killed may still be ending
_CONNECT_S = 5.0
_CHECK_S = 2.0

_TAKE = text(
    "DELETE FROM agentdouble.records AS one "
    "USING unnest(CAST(:kinds AS text[]), CAST(:ids AS text[])) AS named(kind, id) "
    "WHERE one.kind = named.kind AND one.id = named.id RETURNING one.kind, one.id, one.record"
)
_PUT = text(
    "INSERT INTO agentdouble.records (kind, id, record) SELECT * FROM unnest("
    "CAST(:kinds AS text[]), CAST(:ids AS text[]), CAST(:records AS text[]))"
)

_Rows = dict[tuple[str, str], writing.Row]


class PostgresqlStore(SqlStore):
    """Records in a PostgreSQL database; belongs to one event loop.

    Raises StateError for a URL that cannot be read.
    """

    what = "state database"

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url).set(drivername="postgresql+asyncpg")
        except (ArgumentError, ValueError) as error:
            raise StateError(f"This names no database: {error}", where="postgresql") from None
        where = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
        super().__init__(where, owning.records)
        engine = create_async_engine(
            parsed, poolclass=NullPool, connect_args={"timeout": _CONNECT_S}
        )
        self._link = Link(engine, self._error)
        self._unknown: _Rows = {}

    async def open(self) -> None:
        """Open and lock the schema; raise StateError if we cannot use it."""
        if not self._link.is_open:
            await self._link.open(_LOCK_TIMEOUT_S)

    async def close(self) -> None:
        """Write all queued changes and release the database, whether it answers or not."""
        if self._link.is_open:
            self._link.stop_waiting()
            await self._writing.close()
        await self._link.close()

    async def check(self) -> None:
        """Raise StateError if the server does not answer or the records are not ours."""
        refusal = self._link.refusal()
        if refusal is not None:
            raise refusal
        checking = asyncio.ensure_future(self._check())
        await asyncio.wait({checking}, timeout=_CHECK_S)
        if not checking.done():
            checking.add_done_callback(lambda one: one.exception())
            raise self._error("does not answer", OSError(f"it has said nothing for {_CHECK_S:g} s"))
        checking.result()

    async def _check(self) -> None:
        try:
            async with self._link.transaction(until=0) as connection:
                await owning.look(connection, self._link.owner)
                await connection.rollback()
        except LostError as error:
            raise self._error("is lost", error.__cause__ or error) from None
        except link.FAILURES as error:
            raise self._error("cannot be read", error) from None
        await super().check()

    async def _fetch(self, query: Select[Any]) -> Sequence[Any]:
        until = asyncio.get_running_loop().time() + link.PATIENCE_S
        while True:
            try:
                async with self._link.transaction(until) as connection:
                    rows: Sequence[Any] = (await connection.execute(query)).all()
                    await connection.rollback()
                    return rows
            except LostError:
                continue  # the next try has another connection, or raises StateError
            except link.FAILURES as error:
                raise self._error("cannot be read", error) from None

    async def _commit(self, rows: Sequence[writing.Row]) -> None:
        """Write rows; repeat on a new connection if one is lost, which changes nothing."""
        until = asyncio.get_running_loop().time() + link.PATIENCE_S
        while True:
            try:
                await self._commit_once({row.name: row for row in rows}, until)
                return
            except LostError:
                continue
            except link.FAILURES as error:
                raise self._error("cannot be written", error) from None

    async def _commit_once(self, rows: _Rows, until: float) -> None:
        """Write rows; first undo what a lost connection may have written.

        A commit without an answer may have been made or not, and the caller that waited for it may
        have got an error since. The earlier rows are kept until that is settled.
        """
        owner, settled = self._link.owner, self._unknown
        try:
            async with self._link.transaction(until) as connection:
                await owning.count(connection, owner)
                before = await _exchange(connection, {**settled, **rows})
                self._unknown = {**before, **settled}
                await connection.commit()
        except LostError:
            raise
        except BaseException:  # the server has answered, or nothing was sent
            self._unknown = settled
            raise
        self._unknown = {}
        owner.writes += 1


async def _exchange(connection: AsyncConnection, rows: _Rows) -> _Rows:
    """Replace the stored rows by these, and return the earlier ones."""
    named = {"kinds": [kind for kind, _ in rows], "ids": [id_ for _, id_ in rows]}
    before = {name: writing.Row(*name, None) for name in rows}
    for row in await connection.execute(_TAKE, named):
        before[row.kind, row.id] = writing.Row(row.kind, row.id, row.record)
    new = [row for row in rows.values() if row.record is not None]
    if new:
        kinds, ids = [row.kind for row in new], [row.id for row in new]
        records = [row.record for row in new]
        await connection.execute(_PUT, {"kinds": kinds, "ids": ids, "records": records})
    return before
