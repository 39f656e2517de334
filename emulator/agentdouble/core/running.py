"""Files that let programs of one user find each other: the local key pair, the running doubles.

All are in one directory that only this user can read. The key pair and the token are made once, so
an exported environment stays valid when the double is restarted. This is for ``agentdouble serve``: an
``Emulator()`` makes a new pair each time.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from agentdouble.core.environment import Connection
from agentdouble.core.signing import Credentials
from agentdouble.errors import AgentDoubleError


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
    """Return this user's local key pair and the token of own routes, made on first use."""
    path = directory() / "credentials.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads(path.read_text("utf-8"))
        return Credentials(stored["access_key"], stored["secret_key"]), stored["token"]
    credentials = Credentials(f"AKLT{secrets.token_hex(12)}", secrets.token_urlsafe(32))
    token = secrets.token_urlsafe(32)
    keys = {"access_key": credentials.access_key, "secret_key": credentials.secret_key}
    _write(path, {**keys, "token": token})
    return credentials, token


@contextmanager
def announced(connection: Connection, *, listed: bool = True) -> Iterator[None]:
    """Let other commands find this process's double while the block runs.

    A double that is not ``listed`` serves one command or one run of tests. Only ``at`` finds it.
    """
    path = directory() / f"{'running' if listed else 'private'}-{os.getpid()}.json"
    _write(path, asdict(connection))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def at(port: int | None) -> list[Connection]:
    """Return this user's running doubles on that port, the latest first."""
    connections = [*doubles(), *_announced("private")]
    return [double for double in connections if urlsplit(double.url).port == port]


def doubles() -> list[Connection]:
    """Return this user's listed doubles, the latest first; remove the files of ended ones."""
    return _announced("running")


def _announced(kind: str) -> list[Connection]:
    connections = []
    for path in sorted(directory().glob(f"{kind}-*.json"), key=_announced_at, reverse=True):
        if not _alive(path.stem.partition("-")[2]):
            path.unlink(missing_ok=True)
            continue
        with suppress(OSError, ValueError, TypeError):
            connections.append(Connection(**json.loads(path.read_text("utf-8"))))
    return connections


def _announced_at(path: Path) -> float:
    """Return when a double was announced, or 0 if it has just stopped."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _alive(pid: str) -> bool:
    if not pid.isdecimal() or int(pid) == 0:
        return False
    try:
        os.kill(int(pid), 0)  # noqa: TID251 (0 sends no signal)
    except OSError:
        return False
    return True


def _write(path: Path, content: dict[str, str]) -> None:
    """Write a file that only this user can read, completely or not at all."""
    draft = path.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)  # left by a killed process with the same number
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file)
    draft.replace(path)
