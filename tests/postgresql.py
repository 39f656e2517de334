"""A PostgreSQL server for the tests, from the package that Debian has, on a free port."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import ports

MISSING = "PostgreSQL is not installed: apt-get install postgresql"
_USERS = ("postgres", "nobody")  # a server refuses to run as root


def programs() -> Path | None:
    """Return where PostgreSQL's programs are, the newest version's, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).parent


@contextmanager
def running(bin_: Path) -> Iterator[str]:
    """Yield the URL of a new and empty server; nothing of it is left behind."""
    with tempfile.TemporaryDirectory(prefix="agentdouble-pg-") as folder:
        user = _user()
        data = Path(folder) / "data"
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        _run([bin_ / "initdb", "-D", data, "-U", "double", "-A", "trust", "-N"], user)
        control = [bin_ / "pg_ctl", "-D", data, "-w"]
        with ports.held() as port:
            options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
            _run([*control, "-l", Path(folder) / "log", "-o", options, "start"], user)
        try:
            yield f"postgresql://double@127.0.0.1:{port}/postgres"
        finally:
            _run([*control, "-m", "immediate", "stop"], user)


def _version(path: Path) -> int:
    number = path.parent.parent.name
    return int(number) if number.isdigit() else 0


def _user() -> pwd.struct_passwd | None:
    """Return whom to run it as, None for ourselves."""
    if os.geteuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
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
