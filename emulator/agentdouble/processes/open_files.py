"""The limit of open files of a process that is the double's own; other processes keep theirs.

The soft limit is low so that programs which know only small descriptors do not meet others (256 on
macOS, 1024 on Linux). The double takes five for each kernel and copes with any, since select() is used
nowhere: so a command raises its own limit, and what it starts finds the one that was there. An
``Emulator`` leaves the limit of its process as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

if sys.platform != "win32":
    import resource

_ENOUGH = 1 << 20
_MACOS_MOST = 10240  # OPEN_MAX: what it takes where the hard limit is none
_found: list[int] = []  # the soft limit before it was raised


def raise_limit() -> None:
    """Raise this process's limit as far as it may: call it in a command's own process."""
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
    """Give another process, which has just begun, the limit that this one found; Linux only."""
    if _found and sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(OSError):  # it has ended
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (_found[0], hard))


@contextmanager
def as_found() -> Iterator[None]:
    """Start a process inside with the limit as it was; this one may hardly open files meanwhile."""
    if not _found or sys.platform == "win32":
        yield
        return
    raised = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_found[0], raised[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, raised)
