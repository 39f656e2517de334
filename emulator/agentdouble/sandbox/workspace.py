"""Directories of sessions: where they are, what environment a kernel gets, how they go away.

A double keeps everything in one directory that it locks while it lives. A double that was
killed leaves its directory; the next one finds that nobody holds the lock and removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "agentdouble-"
_LOCK = "lock"
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Workspace:
    """The directories of one session: ``home`` for its code, ``run`` for its sockets."""

    home: Path
    run: Path

    def environment(self) -> Mapping[str, str]:
        """Return a kernel's whole environment: nothing of the server's secrets is in it."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {
            **inherited,
            "HOME": str(self.home),
            "TMPDIR": str(self.run / "tmp"),
            "IPYTHONDIR": str(self.run / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(self.run),
            "MPLCONFIGDIR": str(self.run / "matplotlib"),
            "PYTHONIOENCODING": "utf-8",
        }

    def remove(self) -> None:
        """Remove the directories and all that is in them."""
        shutil.rmtree(self.home.parent, ignore_errors=True)


class Workspaces:
    """Makes session directories inside one private directory of this double."""

    def __init__(self) -> None:
        sweep()
        self._root = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock(self._root)
        self._made = 0

    def make(self) -> Workspace:
        """Make the directories of a new session."""
        self._made += 1
        base = self._root / str(self._made)
        workspace = Workspace(home=base / "home", run=base / "run")
        for path in (workspace.home, workspace.run, workspace.run / "tmp"):
            path.mkdir(mode=0o700, parents=True)
        return workspace

    def remove(self) -> None:
        """Remove this double's directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        shutil.rmtree(self._root, ignore_errors=True)


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
                shutil.rmtree(root, ignore_errors=True)
            finally:
                os.close(lock)


def _lock(root: Path) -> int | None:
    if sys.platform == "win32":
        return None
    unlocked = root / f"{_LOCK}.new"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(root / _LOCK)  # appears locked: no sweep can come first
    return lock
