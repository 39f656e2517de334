"""The store in PostgreSQL, through SQLAlchemy and asyncpg; import it only where it is asked for.

The records have a schema of their own, ``agentdouble``. It belongs to one double at a time: an
advisory lock is held as long as the connection lives.
"""

from __future__ import annotations

from asyncpg import PostgresError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from agentdouble.errors import StateError
from agentdouble.state.sql import SqlStore, metadata

_LOCK = 0x6167656E74  # "agent", a number of ours among the locks of the database
_LOCK_TIMEOUT_S = 2  # one that was killed a moment ago may still be going


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
        super().__init__(create_async_engine(parsed, poolclass=NullPool), where)

    async def open(self) -> None:
        """Open and lock the schema; raise StateError if it is not ours to use."""
        if self._connection is not None:
            return
        try:
            connection = await self._engine.connect()
        except (DBAPIError, PostgresError, OSError) as error:  # older SQLAlchemy wraps not all
            raise self._error("cannot be opened", error) from None
        try:
            await _prepare(connection)
        except BaseException as error:
            await connection.close()
            if isinstance(error, DBAPIError):
                raise self._error("cannot be used", error) from None
            raise
        self._connection = connection


async def _prepare(connection: AsyncConnection) -> None:
    await connection.exec_driver_sql(f"SET lock_timeout = {_LOCK_TIMEOUT_S * 1000:.0f}")
    await connection.exec_driver_sql(f"SELECT pg_advisory_lock({_LOCK})")
    await connection.exec_driver_sql("SET lock_timeout = 0")
    await connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS agentdouble")
    await connection.exec_driver_sql("SET search_path TO agentdouble")
    await connection.run_sync(metadata.create_all)
    await connection.commit()
