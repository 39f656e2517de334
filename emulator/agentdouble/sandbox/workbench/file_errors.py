"""The errors of file operations, with the data that the public sandbox gives about them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agentdouble.sandbox.workbench.wire import FailedError

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
    except (ValueError, UnicodeError) as error:
        raise failure(operation, path, error, "invalid_argument") from error
