"""Directories of sessions: where they are, what environment a kernel gets, how they go away.

A double keeps everything in one directory that it locks while it lives. A double that was
killed leaves its directory; the next one finds that nobody holds the lock and removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

if sys.platform != "win32":
    import fcntl

PREFIX = "agentdouble-"
_LOCK = "lock"
RESERVED = (
    "HOME",
    "TMPDIR",
    "IPYTHONDIR",
    "JUPYTER_RUNTIME_DIR",
    "MPLCONFIGDIR",
    "PYTHONIOENCODING",
)
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Workspace:
    """The directories of one session: ``home`` and ``tmp`` for its code, ``runs`` for sockets.

    ``variables`` are what its maker puts into the environment.
    """

    home: Path
    tmp: Path
    runs: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def make_run(self) -> Path:
        """Make a directory for the sockets of one more kernel.

        Nobody else has ever written to it, and only the double can put another in its place.
        """
        return Path(tempfile.mkdtemp(prefix="", dir=self.runs))

    def environment(self, run: Path) -> Mapping[str, str]:
        """Return a kernel's whole environment: nothing of the server's secrets is in it."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {
            **inherited,
            **self.variables,
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "IPYTHONDIR": str(run / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(run),
            "MPLCONFIGDIR": str(run / "matplotlib"),
            "PYTHONIOENCODING": "utf-8",
        }

    def remove(self) -> None:
        """Remove the directories and all that is in them; takes as long as there are files."""
        _remove(self.home.parent)


class Workspaces:
    """Makes session directories inside one private directory of this double."""

    def __init__(self) -> None:
        sweep()
        self._root = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock(self._root)
        self._made = 0

    def make(self, variables: Mapping[str, str] = MappingProxyType({})) -> Workspace:
        """Make the directories of a new session, with more variables for its environment."""
        self._made += 1
        base = self._root / str(self._made)
        workspace = Workspace(
            home=base / "home", tmp=base / "tmp", runs=base / "run", variables=variables
        )
        for path in (workspace.home, workspace.tmp, workspace.runs):
            path.mkdir(mode=0o700, parents=True)
        return workspace

    def remove(self) -> None:
        """Remove this double's directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        _remove(self._root)


def sweep() -> None:
    """Remove the directories of doubles of this user that were killed."""
    if sys.platform == "win32":
        return
    for root in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if root.lstat().st_uid != os.getuid() or not (root / _LOCK).exists():
                continue
            lock = os.open(root / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(root)
            finally:
                os.close(lock)


def _remove(directory: Path) -> None:
    """Remove a directory, also one that is nested very deep or closed to its own user."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(directory)
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        if directory.exists() and sys.platform != "win32":
            subprocess.run([*command, str(directory)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603


def _lock(root: Path) -> int | None:
    if sys.platform == "win32":
        return None
    unlocked = root / f"{_LOCK}.new"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(root / _LOCK)  # appears locked: no sweep can come first
    return lock
