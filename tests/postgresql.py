"""A PostgreSQL server for tests, from Debian's package, on a free port."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests import machine, ports

MISSING = "PostgreSQL is not installed: apt-get install postgresql"
_USERS = ("postgres", "nobody")  # a server refuses to run as root


def programs() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs, or None."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if binaries:
        return binaries[-1].parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).parent


class Server:
    """A server with its data in ``folder``, on one port for all its life; ``url`` is its address."""

    def __init__(self, bin_: Path, folder: Path, port: int) -> None:
        self._user = _user()
        self._data = folder / "data"
        self._control = [bin_ / "pg_ctl", "-D", self._data, "-w"]
        self._options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._log = folder / "log"
        self.url = f"postgresql://double@127.0.0.1:{port}/postgres"
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        _run([bin_ / "initdb", "-D", self._data, "-U", "double", "-A", "trust", "-N"], self._user)

    def start(self, *options: str) -> None:
        """Start the server; return when it is ready."""
        options_text = " ".join([self._options, *(f"-c {option}" for option in options)])
        _run([*self._control, "-l", self._log, "-o", options_text, "start"], self._user)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it at once, like a crash; ``fast`` tells its clients first."""
        _run([*self._control, "-m", mode, "stop"], self._user)

    @property
    def pid(self) -> int:
        """Return the process id of the server's main process."""
        return int((self._data / "postmaster.pid").read_text().split()[0])


def required() -> Path:
    """Return the folder of PostgreSQL's programs; if missing, skip or fail the test."""
    directory = programs()
    if directory is None:
        machine.lack(MISSING)
    pytest.importorskip("asyncpg", reason="asyncpg is not installed: pip install asyncpg")
    return directory


@contextmanager
def running(bin_: Path) -> Iterator[str]:
    """Yield the URL of a new, empty server; remove it afterwards."""
    with serving(bin_) as server:
        yield server.url


@contextmanager
def serving(bin_: Path) -> Iterator[Server]:
    """Yield a new, empty server that is ready; remove it afterwards."""
    prefix = "agentdouble-pg-"
    with tempfile.TemporaryDirectory(prefix=prefix) as folder, ports.reserved() as port:
        server = Server(bin_, Path(folder), port)  # the port is held while a test has it stopped
        server.start()
        try:
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):  # a test may have stopped it
                server.stop()


def _version(path: Path) -> int:
    number = path.parent.parent.name
    return int(number) if number.isdigit() else 0


def _user() -> pwd.struct_passwd | None:
    """Return the user to run it as, or None for the current one."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam(next(name for name in _USERS if name in names))


def _run(command: Sequence[object], user: pwd.struct_passwd | None) -> None:
    subprocess.run(
        [str(word) for word in command],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=None if user is None else user.pw_uid,
        group=None if user is None else user.pw_gid,
        extra_groups=None if user is None else [],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        cwd="/",
    )
