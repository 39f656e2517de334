"""The ownership of the records in PostgreSQL: a lock that a connection holds, and a name.

Only the owner writes: each transaction checks the owner's name and counts. So even a pooler,
behind which a lock has little meaning, cannot make two owners.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    MetaData,
    Table,
    Text,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from agentdouble.errors import StateError
from agentdouble.state.sql import records_of

SCHEMA = "agentdouble"
LOCK = 0x6167656E74  # "agent", our number among the locks of the database
_PAUSE_S = 0.05

metadata = MetaData(schema=SCHEMA)
records = records_of(metadata)
_owner = Table(
    "owner",
    metadata,
    Column("is_owner", Boolean, CheckConstraint("is_owner"), primary_key=True),
    Column("name", Text, nullable=False),
    Column("writes", BigInteger, nullable=False),
)
_READ_ONLY = "25006"


class OtherOwnerError(Exception):
    """Another double has been the owner meanwhile, or the records have been replaced."""


class LockedError(Exception):
    """Another double is the owner now."""


@dataclass
class Owner:
    """One owner: its name, how many times it has written, and why it is not the owner any more."""

    name: str
    writes: int = 0
    lost: StateError | None = None


async def lock(connection: AsyncConnection, patience_s: float) -> None:
    """Take the lock for the lifetime of the connection; raise LockedError if that fails."""
    for _ in range(1 + round(patience_s / _PAUSE_S)):
        found = await connection.execute(text(f"SELECT pg_try_advisory_lock({LOCK})"))
        if found.scalar_one():
            return
        await asyncio.sleep(_PAUSE_S)
    raise LockedError("the database is locked")


async def begin(connection: AsyncConnection, owner: Owner) -> None:
    """Become the owner, with the lock held; make missing tables."""
    found = await connection.execute(text(f"SELECT to_regnamespace('{SCHEMA}')::text"))
    if found.scalar_one() is None:
        await connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
    await connection.run_sync(metadata.create_all)
    mine = {"name": owner.name, "writes": owner.writes}
    await connection.execute(
        insert(_owner)
        .values(is_owner=True, **mine)
        .on_conflict_do_update(index_elements=["is_owner"], set_=mine)
    )


async def look(connection: AsyncConnection, owner: Owner) -> None:
    """Raise OtherOwnerError if there is another owner."""
    found = await connection.execute(
        text(f"SELECT to_regclass('{SCHEMA}.owner')::text, to_regclass('{SCHEMA}.records')::text")
    )
    if None in found.one():
        raise OtherOwnerError("its tables have been dropped")
    found = await connection.execute(_owner.select())
    row = found.one_or_none()
    if row is None or row.name != owner.name:
        raise OtherOwnerError("another double has used it meanwhile")
    if row.writes not in (owner.writes, owner.writes + 1):  # the last write may have got no answer
        raise OtherOwnerError("it has gone back to an earlier state")


async def resume(connection: AsyncConnection, owner: Owner) -> None:
    """Confirm the ownership, with the lock held and writing possible; raise OtherOwnerError."""
    await look(connection, owner)
    await connection.execute(update(_owner).values(name=owner.name))


async def count(connection: AsyncConnection, owner: Owner) -> None:
    """Count a transaction as the owner's next; raise OtherOwnerError if there is another owner."""
    counted = await connection.execute(
        update(_owner).where(_owner.c.name == owner.name).values(writes=owner.writes + 1)
    )
    if counted.rowcount != 1:
        raise OtherOwnerError("another double has used it meanwhile")


async def backend(connection: AsyncConnection) -> tuple[int, dt.datetime]:
    """Return the process id and the start time by which the server knows a connection."""
    found = await connection.execute(
        text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    )
    pid, start = found.one()
    return pid, start


async def end_backend(connection: AsyncConnection, pid: int, start: dt.datetime) -> None:
    """Make the server end a lost connection of ours that it may still consider alive."""
    await connection.execute(
        text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid = :pid AND backend_start = :start"
        ),
        {"pid": pid, "start": start},
    )


def is_read_only(error: BaseException) -> bool:
    """Return whether a server refused to write because it is no longer the primary."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == _READ_ONLY
