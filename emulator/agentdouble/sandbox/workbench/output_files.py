"""The files with the whole output of commands, of which answers show only a part."""

from __future__ import annotations

import contextlib
import os
import uuid

from agentdouble.sandbox.workbench import content
from agentdouble.sandbox.workbench.processes import CommandOutput
from agentdouble.sandbox.workbench.wire import TMP, Paths

DIRECTORY = f"{TMP}/shell-output"
FILE_LIMIT = 16 * 1024 * 1024  # bytes; what is beyond is not kept
MOST_FILES = 16
MOST_BYTES = 4 * FILE_LIMIT
_NOTE = b"\n[... the output beyond %d bytes was not kept ...]\n" % FILE_LIMIT


class OutputFile:
    """The file of one command, whose output begins at the offset ``begin`` of its stream."""

    def __init__(self, paths: Paths, begin: int) -> None:
        self._paths = paths
        self._path = f"{DIRECTORY}/{uuid.uuid4().hex}.txt"
        self._begin = self._written_to = begin
        self._lost = False

    def save(self, output: CommandOutput, until: int) -> str | None:
        """Append the output before the offset ``until`` that the file does not have yet.

        Return the session's path of the file, or None if the session has no room for it or has
        removed it.
        """
        if self._lost:
            return None
        limit = self._begin + FILE_LIMIT
        data = output.data(self._written_to, min(until, limit))
        if self._written_to <= limit < until:
            data += _NOTE
        if data:
            try:
                self._append(data)
            except OSError:
                self._lost = True
                return None
        self._written_to = until
        return self._path

    def _append(self, data: bytes) -> None:
        real = self._paths.real(self._path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        if self._written_to == self._begin:
            content.make_parents(real)
            _make_room(os.path.dirname(real))  # noqa: PTH120
            flags |= os.O_CREAT | os.O_EXCL
        with os.fdopen(content.open_regular(real, flags), "ab") as file:
            file.write(data)


def _make_room(directory: str) -> None:
    """Remove the oldest files until there is room for another one."""
    files = sorted((entry for entry in os.scandir(directory) if entry.is_file()), key=_age)
    size = sum(file.stat().st_size for file in files)
    for count, file in zip(range(len(files), 0, -1), files, strict=True):
        if count < MOST_FILES and size <= MOST_BYTES - FILE_LIMIT:
            return
        size -= file.stat().st_size
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.path)  # noqa: PTH108


def _age(entry: os.DirEntry[str]) -> int:
    return entry.stat().st_mtime_ns
