"""Reading, writing and replacing the content of regular files; others might block."""

from __future__ import annotations

import base64
import binascii
import errno
import itertools
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal

from agentdouble.sandbox.workbench.wire import FailedError

Encoding = Literal["utf-8", "base64", "raw"]

READ_LIMIT = 16 * 1024 * 1024  # bytes of one answer; larger files are downloaded


def open_regular(path: str, flags: int) -> int:
    """Return a descriptor of a regular file; raise OSError for any other kind, even for a pipe."""
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
        raise ValueError(f"the text is larger than {READ_LIMIT} bytes: download the file")
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
        raise ValueError(f"the content is not valid base64: {error}") from None


def write(path: str, data: bytes, *, append: bool) -> int:
    """Write to a file and return the number of bytes written.

    Creates the file and its directories if they are missing. Raises OSError.
    """
    make_parents(path)
    mode = os.O_APPEND if append else os.O_TRUNC
    with os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT | mode), "wb") as file:
        return file.write(data)


def make_parents(path: str) -> None:
    """Create the directories above a path, however many; os.makedirs is recursive."""
    missing, directory = [], os.path.dirname(path)  # noqa: PTH120
    while directory and not os.path.exists(directory):  # noqa: PTH110
        missing.append(directory)
        directory = os.path.dirname(directory)  # noqa: PTH120
    for directory in reversed(missing):
        try:
            os.mkdir(directory)  # noqa: PTH102
        except FileExistsError:
            if not os.path.isdir(directory):  # noqa: PTH112
                raise


def replace(path: str, old: str, new: str) -> int:
    """Replace all occurrences of a text; return their number. Raises OSError, ValueError."""
    if not old:
        raise ValueError("the text to replace must not be empty")
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        data = file.read(READ_LIMIT + 1)
    if len(data) > READ_LIMIT:
        raise ValueError(f"the file is larger than {READ_LIMIT} bytes")
    count = data.count(old.encode())
    if count:
        write(path, data.replace(old.encode(), new.encode()), append=False)
    return count


_KINDS = {
    errno.ENOENT: "not_found",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.EISDIR: "is_a_directory",
    errno.ENOTDIR: "not_a_directory",
    errno.EEXIST: "already_exists",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "too_large",
    errno.ENAMETOOLONG: "invalid_path",
    errno.ELOOP: "invalid_path",
    errno.EINVAL: "invalid_argument",
}
_PASSING = (errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def failure(operation: str, path: str, error: Exception, kind: str = "io_error") -> FailedError:
    """Return the error of a failed operation, with the data that the public sandbox gives."""
    number = error.errno if isinstance(error, OSError) else None
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    data: dict[str, Any] = {
        "path": path,
        "operation": operation,
        "message": reason,
        "error_type": _KINDS.get(number or 0, kind),
        "retryable": number in _PASSING,
        "errno": number,
        "errno_name": None if number is None else errno.errorcode.get(number),
        "exception_type": type(error).__name__,
    }
    return FailedError(f"Cannot {operation} {path!r}: {reason}", data)


@contextmanager
def as_failure(operation: str, path: str) -> Iterator[None]:
    """Turn errors raised inside the context into the failure of an operation on a path."""
    try:
        yield
    except OSError as error:
        raise failure(operation, path, error) from error
    except RecursionError as error:
        reason = ValueError("the path or the pattern is nested too deeply")
        raise failure(operation, path, reason, "invalid_argument") from error
    except (ValueError, OverflowError, re.error) as error:
        raise failure(operation, path, error, "invalid_argument") from error
