"""A file that is locked in addition to SQLite's own lock, and checked to be still at its path."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

_PAUSE_S = 0.02


class HeldFile:
    """A file at a path, held from ``hold()`` until ``release()``.

    SQLite's lock belongs to the process, and ends when any code in the process closes the file
    after reading it. On Linux a second lock is held that does not end so. On other systems it
    would conflict with SQLite's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def make(self) -> None:
        """Make the file if there is none, readable only by its user, because it contains keys."""
        with suppress(OSError):  # SQLite's error about a wrong path is clearer
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def hold(self, patience_s: float) -> None:
        """Lock the file; raise OSError if another process or store has locked it."""
        self._descriptor = descriptor = os.open(self._path, os.O_RDONLY)
        if sys.platform != "linux":
            return
        for _ in range(round(patience_s / _PAUSE_S)):
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_PAUSE_S)
        raise OSError("the file is locked")

    def is_there(self) -> bool:
        """Return whether the file is still at its path."""
        if self._descriptor is None:
            return False
        held = os.fstat(self._descriptor)
        try:
            found = self._path.stat()
        except OSError:
            return False
        return (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)

    def release(self) -> None:
        """Release the file; later calls do nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
