"""The resources that a start needs (open files, processes, memory), and the error without them."""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from agentdouble.errors import ResourceExhaustedError

MIB = 1024 * 1024
_UNCOUNTED = 64  # sessions, if the system does not report its resources
_FAMILY = 16  # a session and its copies may together have this many times its process_limit
_SHARE = 8  # a family may have this fraction of the processes that the machine has left
_ERRORS = {  # the resource that a failed system call reports as exhausted
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
    errno.EAGAIN: "processes",
    errno.ENOMEM: "memory",
    errno.ENOSPC: "disk",
    errno.EDQUOT: "disk",
}
_RAISES = {
    "open files": "raise the limit of open files (ulimit -n, LimitNOFILE= of systemd)",
    "processes": "raise the limit of processes (ulimit -u, pids.max of the control group, "
    "sysctl kernel.pid_max)",
    "memory": "give the machine or its control group more memory",
    "disk": "free space for temporary files, or set TMPDIR to another directory",
}


@dataclass(frozen=True)
class Headroom:
    """A resource's amounts: available, needed per session, and reserved.

    The reserve is for the double and the running sessions. Memory is in bytes.
    """

    resource: str
    available: int
    session: int
    reserve: int

    @property
    def sessions(self) -> int:
        """The number of further sessions for which it suffices."""
        return max(0, self.available - self.reserve) // self.session


@dataclass(frozen=True)
class SessionLimit:
    """The number of possible sessions; ``resource`` is the scarcest, None if none is counted."""

    sessions: int
    resource: str | None


def check(under_way: int = 0) -> None:
    """Raise ResourceExhaustedError if this machine lacks the resources for another session.

    ``under_way`` is the number of starts that do not yet use all that they will need.
    """
    for headroom in headrooms():
        if headroom.sessions <= under_way:
            mib = headroom.resource == "memory"
            available = f"{headroom.available / MIB:.0f} MiB" if mib else str(headroom.available)
            raise exhausted(headroom.resource, f"{available} left")


def session_limit() -> SessionLimit:
    """Return how many more sessions this machine has resources for, at least one."""
    scarcest = min(headrooms(), key=lambda headroom: headroom.sessions, default=None)
    if scarcest is None:
        return SessionLimit(_UNCOUNTED, None)
    return SessionLimit(max(1, scarcest.sessions), scarcest.resource)


def family_limit(process_limit: int) -> int:
    """Return the limit of processes for a session with its copies, which Linux counts together.

    It is far below the machine's free processes, so that no session can use them up.
    """
    available = processes_available()
    limit = process_limit * _FAMILY
    return limit if available is None else max(process_limit, min(limit, available // _SHARE))


@contextmanager
def named() -> Iterator[None]:
    """Turn an OSError about an exhausted resource inside into a ResourceExhaustedError."""
    try:
        yield
    except OSError as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        raise refusal from error


def refusal_of(error: BaseException) -> ResourceExhaustedError | None:
    """Return the refusal of a start that failed with an error; None if no resource is exhausted."""
    if isinstance(error, ResourceExhaustedError):
        return error
    if not isinstance(error, OSError) or error.errno not in _ERRORS:
        return None
    return exhausted(_ERRORS[error.errno], error.strerror or str(error))


def exhausted(resource: str, evidence: str) -> ResourceExhaustedError:
    """Return the refusal for an exhausted resource; ``evidence`` says how that was noticed."""
    return ResourceExhaustedError(resource, evidence, _RAISES[resource])


def headrooms() -> Iterator[Headroom]:
    """Yield the amounts of each resource that sessions need and that can be counted here."""
    for name, count, session, reserve in _COUNTED:
        available = count()
        if available is not None:
            yield Headroom(name, available, session, reserve)


def _open_files() -> int | None:
    """Return how many more files this process can open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    listed = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    used = sys.platform == "linux" and os.stat(listed).st_size  # noqa: PTH116
    used = used or len(os.listdir(listed))  # noqa: PTH208 (on the loop)
    return None if limit == resource.RLIM_INFINITY else limit - used


def processes_available() -> int | None:
    """Return how many more processes and threads this machine and its control group allow."""
    limits = [_available_in_group("pids")]
    with suppress(OSError, ValueError):
        running = int(_read("/proc/loadavg").split()[3].partition(b"/")[2])
        for name in ("pid_max", "threads-max"):
            limits.append(int(_read(f"/proc/sys/kernel/{name}")) - running)
    return min((count for count in limits if count is not None), default=None)


def _memory() -> int | None:
    """Return how much memory this machine and its control group have available, in bytes."""
    amounts = [_available_in_group("memory")]
    with suppress(OSError, IndexError):
        available = _read("/proc/meminfo").partition(b"MemAvailable:")[2]
        amounts.append(int(available.split()[0]) * 1024)
    return min((count for count in amounts if count is not None), default=None)


def _available_in_group(controller: str) -> int | None:
    """Return what remains in this process's control group (version 2), or None without a limit."""
    try:
        group = "/sys/fs/cgroup" + _read("/proc/self/cgroup").decode().partition("0::")[2].strip()
        limit = int(_read(f"{group}/{controller}.max"))  # "max", where there is no limit
        used = int(_read(f"{group}/{controller}.current"))
        if controller == "memory":  # the system can free these if needed
            used -= int(_read(f"{group}/memory.stat").partition(b"inactive_file ")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return max(0, limit - used)


def _read(file: str) -> bytes:
    with open(file, "rb", buffering=0) as opened:  # noqa: PTH123 (a third of the time)
        return opened.read()


# Measured for a Python session: its kernel's memory and threads, and the sockets and pidfd here.
_COUNTED: tuple[tuple[str, Callable[[], int | None], int, int], ...] = (
    ("open files", _open_files, 8, 64),
    ("processes", processes_available, 12, 64),
    ("memory", _memory, 20 * MIB, 256 * MIB),
)

_ENOUGH = 1 << 20
_MACOS_MOST = 10240  # OPEN_MAX: the largest value that macOS accepts without a hard limit


def raise_limit() -> None:
    """Raise this process's limit as far as allowed; call it only in a command's own process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MACOS_MOST if sys.platform == "darwin" else _ENOUGH
    target = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
