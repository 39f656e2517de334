"""Files that let programs of one user find each other: the local key pair, the running doubles.

All are in one directory that only this user can read. The key pair and the token are made once, so
an exported environment stays valid when the double is restarted. This is for ``agentdouble serve``:
an ``Emulator()`` makes a new pair each time.

The directory may be shared by containers, by namespaces of one machine, or by machines. So a record
of a running double names its machine and its network, and the double holds a lock on it: only what
answers in this network is listed, and only a record whose double has ended is removed. A process id
would prove neither, because it has another meaning in each process namespace.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from agentdouble.core.environment import DoubleConnection
from agentdouble.core.signing import Credentials
from agentdouble.errors import AgentDoubleError

if sys.platform != "win32":  # the harness also works on Windows, and imports this module
    import fcntl

ANSWER_WITHIN_S = 1.0


def directory() -> Path:
    """Return the private directory; make it if it does not exist.

    Raises AgentDoubleError if it belongs to another user, who could replace our keys.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(base) / "agentdouble"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    if os.geteuid() not in (0, status.st_uid):
        raise AgentDoubleError(
            f"The directory {path} is another user's: name one of yours by XDG_STATE_HOME."
        )
    if status.st_mode & 0o077:
        path.chmod(0o700)
    return path


def credentials() -> tuple[Credentials, str]:
    """Return this user's key pair and the token of a double's own routes, made on first use."""
    with _opened(directory() / "credentials.json") as file:
        _lock(file)  # of two doubles that start at once, the second takes what the first has made
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            stored = json.load(file)
            return Credentials(stored["access_key"], stored["secret_key"]), stored["token"]
        credentials = Credentials(f"AKLT{secrets.token_hex(12)}", secrets.token_urlsafe(32))
        token = secrets.token_urlsafe(32)
        keys = {"access_key": credentials.access_key, "secret_key": credentials.secret_key}
        file.seek(0)
        file.truncate()
        json.dump({**keys, "token": token}, file)
    return credentials, token


@contextmanager
def announced(connection: DoubleConnection, *, listed: bool = True) -> Iterator[None]:
    """Let other commands find this process's double while the block runs.

    A double that is not ``listed`` serves one command or one run of tests. Only ``at`` finds it.
    """
    path = directory() / f"{'listed' if listed else 'unlisted'}-{secrets.token_hex(8)}.json"
    draft = path.with_suffix(".draft")
    with _opened(draft) as file:
        record = {
            "machine": _machine(),
            "network": _network(),
            "locked": _lock(file),
            "connection": asdict(connection),
        }
        json.dump(record, file)
        file.flush()
        draft.replace(path)  # found only from now on, whole and locked
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def at(port: int | None) -> list[DoubleConnection]:
    """Return this user's running doubles on that port, the latest first."""
    connections = [*doubles(), *_announced("unlisted")]
    return [double for double in connections if urlsplit(double.url).port == port]


def doubles() -> list[DoubleConnection]:
    """Return this user's listed doubles, the latest first; remove the records of ended ones."""
    return _announced("listed")


def _announced(kind: str) -> list[DoubleConnection]:
    paths = sorted(directory().glob(f"{kind}-*.json"), key=_announced_at, reverse=True)
    return [connection for path in paths if (connection := _read(path)) is not None]


def _announced_at(path: Path) -> float:
    """Return when a double was announced, or 0 if it has just stopped."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> DoubleConnection | None:
    """Return the double of a record if it runs here; remove the record if its double has ended."""
    try:
        with path.open(encoding="utf-8") as file:
            record = json.load(file)
            connection = DoubleConnection(**record["connection"])
            if record["machine"] != _machine():
                return None
            here = record["network"] == _network()
            if _is_locked(file) if record["locked"] else not here or _answers(connection):
                return connection if here else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None  # it has just stopped, or is not a record
    path.unlink(missing_ok=True)
    return None


def _opened(path: Path) -> TextIO:
    """Open a file that only this user can read, to read and write; make it if there is none."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")


def _lock(file: TextIO) -> bool:
    """Lock a file until it is closed; return False where the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def _is_locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: other readers do not count
    except OSError:
        return True
    return False


def _answers(connection: DoubleConnection) -> bool:
    parts = urlsplit(connection.url)
    try:
        socket.create_connection((parts.hostname, parts.port), ANSWER_WITHIN_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:  # it may be busy
        return True
    return True


def _machine() -> str:
    """Return an id of this machine's running system, the same in all its containers."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:  # not Linux, or a system without /proc
        return platform.node()


def _network() -> str:
    """Return an id of what 127.0.0.1 means to this process: its network namespace."""
    try:
        return os.readlink("/proc/self/ns/net")  # noqa: PTH115 (no path)
    except OSError:  # not Linux, or a system without /proc
        return ""


def is_here(host: str | None) -> bool:
    """Return whether a host is a loopback name of this machine."""
    return host in ("127.0.0.1", "localhost", "::1")
