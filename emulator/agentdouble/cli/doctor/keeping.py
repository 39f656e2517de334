"""The places where a double can keep its state here: an SQLite file, or PostgreSQL."""

from __future__ import annotations

import os
import socket
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from agentdouble.cli.doctor.findings import Finding, extra, imported, installed, lacking

_SOCKETS = (Path("/var/run/postgresql"), Path("/tmp"))  # noqa: S108 (where PostgreSQL has them)
_CONNECT_TIMEOUT_S = 0.5
_SERVER = "apt-get install postgresql, or name one elsewhere: serve --state postgresql://..."


def find() -> list[Finding]:
    """Write an SQLite file, and look for PostgreSQL."""
    return [_sqlite(), _driver(), _server()]


def _sqlite() -> Finding:
    needed = ("sqlalchemy", "aiosqlite")
    found = installed("sqlite", "SQLite", "{}", needed, remedy=extra("emulator"))
    if not found.good:
        return found
    try:
        mode = _journal_mode()
    except (OSError, sqlite3.Error) as error:
        return lacking("sqlite", "SQLite", error, "export TMPDIR=DIR, with a DIR that has room")
    says = f"{sqlite3.sqlite_version}, journal {mode}: serve --state sqlite:///FILE"
    return Finding("sqlite", "SQLite", says)


def _journal_mode() -> str:
    """Write to a new file, and return its journal mode after a request for WAL."""
    with (
        tempfile.TemporaryDirectory(prefix="agentdouble-doctor-") as folder,
        closing(sqlite3.connect(Path(folder) / "state.db")) as connection,
    ):
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("CREATE TABLE written (here)")
        return str(mode)


def _driver() -> Finding:
    says = "{}: serve --state postgresql://..."
    remedy = extra("emulator,postgres")
    return imported("postgresql", "PostgreSQL", says, {"asyncpg": "asyncpg"}, remedy=remedy)


def _server() -> Finding:
    address = _listening()
    if address is None:
        return lacking("postgresql_server", "its server", "none listens on this machine", _SERVER)
    return Finding("postgresql_server", "its server", f"one listens at {address}")


def _listening() -> str | None:
    port = os.environ.get("PGPORT", "5432")
    for file in (folder / f".s.PGSQL.{port}" for folder in _SOCKETS):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as one:
            one.settimeout(_CONNECT_TIMEOUT_S)  # any program may have made it, and not answer
            one.connect(str(file))
            return str(file)
    with suppress(OSError, ValueError, OverflowError):
        address = ("127.0.0.1", int(port))
        socket.create_connection(address, _CONNECT_TIMEOUT_S).close()
        return f"127.0.0.1:{port}"
    return None
