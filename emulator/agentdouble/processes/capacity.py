"""The resources that a start needs: open files, processes, memory; and the refusal when none are left."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from agentdouble.errors import ResourceExhaustedError
from agentdouble.processes import control_groups, workspace

if sys.platform != "win32":
    import resource

MIB = 1024 * 1024
_UNCOUNTED = 64  # sessions, if the system does not report its resources
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
    "disk": "make room where temporary files are kept, or name another place: TMPDIR",
}


@dataclass(frozen=True)
class Room:
    """The amounts of a resource: what is left, what a session needs, and what is reserved.

    The reserve is for the double and the running sessions. Memory and disk are in bytes.
    """

    resource: str
    left: int
    session: int
    reserve: int

    @property
    def sessions(self) -> int:
        """The number of further sessions for which it suffices."""
        return max(0, self.left - self.reserve) // self.session


@dataclass(frozen=True)
class SessionLimit:
    """The number of possible sessions; ``resource`` is the scarcest, None if none is counted."""

    sessions: int
    resource: str | None


def check(under_way: int = 0) -> None:
    """Raise ResourceExhaustedError if this machine has no room for one more session.

    ``under_way`` is the number of starts that do not yet use all that they will need.
    """
    for room in rooms():
        if room.sessions <= under_way:
            raise exhausted(room.resource, f"{_shown(room)} left")


def session_limit() -> SessionLimit:
    """Return how many further sessions this machine has room for now, at least one."""
    scarcest = min(rooms(), key=lambda room: room.sessions, default=None)
    if scarcest is None:
        return SessionLimit(_UNCOUNTED, None)
    return SessionLimit(max(1, scarcest.sessions), scarcest.resource)


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


def exhausted(resource: str, seen: str) -> ResourceExhaustedError:
    """Return the refusal for an exhausted resource; ``seen`` says how that was noticed."""
    return ResourceExhaustedError(resource, seen, _RAISES[resource])


def rooms() -> Iterator[Room]:
    """Yield the amounts of each resource that sessions need and that can be counted here."""
    for resource, count, session, reserve in _COUNTED:
        left = count()
        if left is not None:
            yield Room(resource, left, session, reserve)


def _open_files() -> int | None:
    """Return how many more files this process can open."""
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return None
    listed = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    used = sys.platform == "linux" and os.stat(listed).st_size  # noqa: PTH116
    used = used or len(os.listdir(listed))  # noqa: PTH208 (on the loop)
    return limit - used


def processes_left() -> int | None:
    """Return how many more processes and threads this machine and its control group allow."""
    found = [control_groups.left("pids")]
    with suppress(OSError, ValueError):
        running = int(_read("/proc/loadavg").split()[3].partition(b"/")[2])
        for name in ("pid_max", "threads-max"):
            found.append(int(_read(f"/proc/sys/kernel/{name}")) - running)
    return min((one for one in found if one is not None), default=None)


def _memory() -> int | None:
    """Return how much memory this machine and its control group have available, in bytes."""
    found = [control_groups.left("memory")]
    with suppress(OSError, IndexError):
        available = _read("/proc/meminfo").partition(b"MemAvailable:")[2]
        found.append(int(available.split()[0]) * 1024)
    return min((one for one in found if one is not None), default=None)


def _read(file: str) -> bytes:
    with open(file, "rb", buffering=0) as opened:  # noqa: PTH123 (a third of the time)
        return opened.read()


def _disk() -> int | None:
    """Return the free space for the files of sessions, in bytes."""
    with suppress(OSError, AttributeError):
        place = os.statvfs(workspace.find())
        return place.f_bavail * place.f_frsize
    return None


def _inodes() -> int | None:
    """Return how many more files the file system of the sessions can hold."""
    with suppress(OSError, AttributeError):
        place = os.statvfs(workspace.find())
        return place.f_favail if place.f_files else None  # some file systems do not count them
    return None


# Measured for a Python session: its kernel's memory and threads, and the sockets and pidfd here.
_COUNTED: tuple[tuple[str, Callable[[], int | None], int, int], ...] = (
    ("open files", _open_files, 8, 64),
    ("processes", processes_left, 12, 64),
    ("memory", _memory, 20 * MIB, 256 * MIB),
    ("disk", _disk, 128 * 1024, MIB),
    ("disk", _inodes, 32, 64),
)


def _shown(room: Room) -> str:
    if room.resource == "memory" or room.session > MIB // 16:
        return f"{room.left / MIB:.0f} MiB"
    return f"{room.left}"


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
