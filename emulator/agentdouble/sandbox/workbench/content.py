"""Reading, writing and replacing the content of files; only of regular files, so no call blocks."""

from __future__ import annotations

import base64
import binascii
import itertools
import os
import stat
from typing import BinaryIO, Literal

Encoding = Literal["utf-8", "base64", "raw"]

READ_LIMIT = 16 * 1024 * 1024  # bytes of one answer; larger files are downloaded


def open_regular(path: str, flags: int) -> int:
    """Return a descriptor of a regular file; raise OSError for any other kind, also for a pipe."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", path)
    raise OSError(22, "Not a regular file", path)


def read(path: str, start_line: int | None, end_line: int | None) -> str:
    """Return a file's lines from ``start_line`` (0 is the first) to before ``end_line``.

    Raises OSError, or ValueError if the text is too large for one answer.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        if start_line is None and end_line is None:
            data = file.read(READ_LIMIT + 1)
        else:
            data = _lines(file, start_line or 0, end_line)
    if len(data) > READ_LIMIT:
        raise ValueError(f"there are more than {READ_LIMIT} bytes to read: download the file")
    return data.decode("utf-8", "replace")


def _lines(file: BinaryIO, start: int, end: int | None) -> bytes:
    found, size = [], 0
    lines = iter(lambda: file.readline(READ_LIMIT + 1), b"")
    for line in itertools.islice(lines, start, end):
        found.append(line)
        size += len(line)
        if size > READ_LIMIT:
            break
    return b"".join(found)


def encode(content: str, encoding: Encoding) -> bytes:
    """Return a client's content as bytes; raise ValueError for bad base64."""
    if encoding != "base64":
        return content.encode()
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise ValueError(f"the content is no base64: {error}") from None


def write(path: str, data: bytes, *, append: bool) -> int:
    """Write to a file and return the number of bytes written.

    Creates the file and its directories if they are missing. Raises OSError.
    """
    make_parents(path)
    how = os.O_APPEND if append else os.O_TRUNC
    with os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT | how), "wb") as file:
        return file.write(data)


def make_parents(path: str) -> None:
    """Create the directories above a path."""
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)  # noqa: PTH103, PTH120


def replace(path: str, old: str, new: str) -> int:
    """Replace all occurrences of a text; return their number. Raises OSError, ValueError."""
    if not old:
        raise ValueError("the text to be replaced is empty")
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        data = file.read(READ_LIMIT + 1)
    if len(data) > READ_LIMIT:
        raise ValueError(f"it has more than {READ_LIMIT} bytes")
    count = data.count(old.encode())
    if count:
        write(path, data.replace(old.encode(), new.encode()), append=False)
    return count
