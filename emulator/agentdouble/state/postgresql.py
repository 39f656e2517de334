"""The store in a PostgreSQL server; import it only if it is configured."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from sqlalchemy import Connection, delete, inspect, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.schema import CreateSchema

from agentdouble.errors import StateError
from agentdouble.state.database import (
    LOCK_TIMEOUT_S,
    PAUSE_S,
    RECORDS,
    RETRY_S,
    DatabaseStore,
    upsert,
)

T = TypeVar("T")

SCHEMA = "agentdouble"
LOCK = 0x6167656E74  # "agent": the double's advisory lock
ANSWER_S = 10.0  # a server that does not answer for so long counts as lost
_CHECK_S = 2.0
_OWNER = "owner"  # the double that opened the database last
_KEEPALIVE = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}


class PostgresqlStore(DatabaseStore):
    """Records in a schema of their own; raises StateError for a URL that cannot be read."""

    _put = upsert(postgresql)

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
        super().__init__(parsed.set(drivername="postgresql").render_as_string(hide_password=True))
        self._engine = create_async_engine(
            parsed,
            pool_size=1,
            max_overflow=0,
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
            await asyncio.sleep(PAUSE_S)

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
            await asyncio.wait_for(self._fetch(select(RECORDS.c.id).limit(1)), _CHECK_S)
        except asyncio.TimeoutError:
            raise self._error("does not answer", OSError(f"no answer in {_CHECK_S:g} s")) from None
        await super().check()

    async def _release(self) -> None:
        await self._engine.dispose()

    async def _connected(self, work: Callable[[Connection], T]) -> T:
        async with self._engine.connect() as connection:
            return await connection.run_sync(self._locked, work)

    def _lock(self, connection: Connection) -> None:
        self._check_owner(connection)  # before waiting for a lock that the other one keeps
        connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'"))
        connection.execute(text(f"SELECT pg_advisory_lock({LOCK})"))
        connection.commit()
        self._check_owner(connection)

    def _check_owner(self, connection: Connection) -> None:
        """Raise StateError if another double had the database since we opened it."""
        if not self._is_open:
            return
        query = select(RECORDS.c.id).where(RECORDS.c.kind == _OWNER)
        if connection.execute(query).scalar_one_or_none() != self._name:
            self._successor = (
                f"Another double has taken over the {self.what} {self.where}, while this one had "
                "lost its connection. Its sessions and changes are not in force there."
            )
            connection.invalidate()  # this also releases the lock
            raise StateError(self._successor, where=self.where)
        connection.commit()

    def _prepare(self, connection: Connection) -> None:
        if not inspect(connection).has_schema(SCHEMA):
            connection.execute(CreateSchema(SCHEMA))
        super()._prepare(connection)
        connection.execute(delete(RECORDS).where(RECORDS.c.kind == _OWNER))
        connection.execute(self._put, [{"kind": _OWNER, "id": self._name, "record": "{}"}])
