"""A file that is held: locked beside SQLite's own lock, and looked for where it was."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

_PAUSE_S = 0.02


class HeldFile:
    """A file of a path, from ``hold()`` until ``release()``.

    SQLite's lock is the process's, and ends when anything in the process that has read the file
    closes it. On Linux a second one is held that does not; elsewhere it would meet SQLite's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def make(self) -> None:
        """Make the file if there is none, for its user alone, as it holds keys."""
        with suppress(OSError):  # SQLite says what is wrong with a path in better words
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def hold(self, patience_s: float) -> None:
        """Lock the file; raise OSError if another process or store has it."""
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
        """Whether the file is still at its path."""
        if self._descriptor is None:
            return False
        held = os.fstat(self._descriptor)
        try:
            found = self._path.stat()
        except OSError:
            return False
        return (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)

    def release(self) -> None:
        """Let go of the file; once is enough."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
