"""The limit of open files, raised for the double's own process; its children get the old limit.

The default soft limit is low (256 on macOS, 1024 on Linux) to protect programs that support only
small descriptors. The double needs five descriptors for each kernel and supports large ones,
because it never uses select(). So a command of the double raises its own limit, and the processes
that it starts get the old one. An ``Emulator`` leaves the limit of its process unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

if sys.platform != "win32":
    import resource

_ENOUGH = 1 << 20
_MACOS_MOST = 10240  # OPEN_MAX: the largest value that macOS accepts without a hard limit
_found: list[int] = []  # the soft limit before it was raised


def raise_limit() -> None:
    """Raise this process's limit as far as allowed; call it only in a command's own process."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MACOS_MOST if sys.platform == "darwin" else _ENOUGH
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            _found.append(soft)


def give_back(pid: int) -> None:
    """Set the old limit for another process that has just started; Linux only."""
    if _found and sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(OSError):  # it has ended
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (_found[0], hard))


@contextmanager
def as_found() -> Iterator[None]:
    """Restore the old limit inside the context, to start a process with it.

    Meanwhile this process can hardly open files.
    """
    if not _found or sys.platform == "win32":
        yield
        return
    raised = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_found[0], raised[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, raised)
