"""The usage of a session: the memory of its processes and the disk space of its files."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from agentdouble.core.imports import import_now
from agentdouble.processes.fork_server.processes import children
from agentdouble.processes.session_files import LONGEST_PATH, open_directory

_OF_A_PROCESS = 2  # CPUCLOCK_SCHED, as clock_getcpuclockid(3) makes the id of a process's clock
_TICK = os.sysconf("SC_CLK_TCK") if sys.platform != "win32" else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if sys.platform != "win32" else 4096
_CAN_WALK = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110
_BLOCK = 4096  # the size counted for an empty file; else a million of them would count as 0


@dataclass(frozen=True)
class Process:
    """A process: its parent, its used processor time (seconds) and its resident memory (bytes)."""

    pid: int
    parent: int
    busy_s: float
    resident: int


class TooDeepError(Exception):
    """A directory is deeper than Linux can name, so its content cannot be counted."""


def busy_ns(pid: int) -> int:
    """Return the processor time of a process and its threads; -1 if the process has ended.

    The call takes a microsecond on Linux and needs no permission. A process with an unchanged time
    has done nothing and started nothing.
    """
    if sys.platform != "linux":
        process = next(_ask_psutil(pid), None)
        return -1 if process is None else int(process.busy_s * 1e9)
    try:  # twice as fast as with ``suppress``; the watch calls this for each process
        return time.clock_gettime_ns(~pid << 3 | _OF_A_PROCESS)
    except OSError:
        return -1


def are_idle(times: Mapping[int, int]) -> bool:
    """Return whether all processes are alive and have used no time since ``busy_ns`` returned it."""
    return all(busy_ns(pid) == busy != -1 for pid, busy in times.items())


def walk(roots: Iterable[int]) -> list[Process]:
    """Return the living processes among ``roots``, and all their descendants."""
    processes, ahead = [], [*roots]
    if not _CAN_WALK:
        return [process for root in ahead for process in _ask_psutil(root)]
    while ahead:
        pid = ahead.pop()
        process = _read_stat(pid)
        if process is not None:
            processes.append(process)
            ahead += children(pid)
    return processes


def memory(session: Iterable[Process], limit: int) -> int:
    """Return the memory of a session's processes, in bytes.

    The quick sum counts shared memory once for each process. The exact sum takes milliseconds, so
    it is used only if the quick sum is over ``limit``.
    """
    processes = [*session]
    quick = sum(process.resident for process in processes)
    return quick if quick <= limit else sum(map(_proportional, processes))


def files(directories: Iterable[str], session: Iterable[Process], limit: int) -> int:
    """Return the size of the files in directories, and of removed files still open, in bytes.

    The count stops when it is over ``limit``. Raises TooDeepError.
    """
    total, linked = 0, set()
    total += sum(map(_disk_size, _deleted(session)))
    for status in _below(directories):
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            if (status.st_dev, status.st_ino) in linked:
                continue
            linked.add((status.st_dev, status.st_ino))
        total += _disk_size(status)
        if total > limit:
            break
    return total


def _disk_size(status: os.stat_result) -> int:
    return max(_BLOCK, status.st_blocks * 512)


def _below(directories: Iterable[str]) -> Iterator[os.stat_result]:
    ahead = [(root, "") for root in directories]
    while ahead:
        root, path = ahead.pop()
        if len(path) > LONGEST_PATH:
            raise TooDeepError
        # An OSError: it has been removed or replaced, or is not readable for this user.
        with suppress(OSError), open_directory(root, path) as opened, os.scandir(opened) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append((root, f"{path}/{entry.name}"))
                    yield entry.stat(follow_symlinks=False)


def _deleted(session: Iterable[Process]) -> Iterator[os.stat_result]:
    """Yield the unnamed files that processes have open, on disk or in memory."""
    counted = set()
    for process in session if sys.platform == "linux" else ():
        for status in _open_in(process.pid):
            is_counted = (status.st_dev, status.st_ino) in counted
            if stat.S_ISREG(status.st_mode) and not status.st_nlink and not is_counted:
                counted.add((status.st_dev, status.st_ino))
                yield status


def _open_in(pid: int) -> Iterator[os.stat_result]:
    """Yield the status of each file that a process has open."""
    with suppress(OSError):
        # relative to an open directory, because that is a third faster for dozens of files
        directory = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in os.listdir(directory):  # noqa: PTH208 (a descriptor)
                with suppress(OSError):
                    yield os.stat(name, dir_fd=directory)
        finally:
            os.close(directory)


def _proportional(process: Process) -> int:
    """Return a process's memory, with only its proportion of shared memory; 0 if it has ended."""
    try:
        with open(f"/proc/{process.pid}/smaps_rollup") as file:  # noqa: PTH123
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return 0
    except OSError:  # it may not be read
        return process.resident


def parent_of(pid: int) -> int | None:
    """Return the pid of a process's parent, or None if it has ended."""
    status = _read_stat(pid)
    return None if status is None else status.parent


def _read_stat(pid: int) -> Process | None:
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123
        fields = file.read().rpartition(b")")[2].split()
        busy_s = (int(fields[11]) + int(fields[12])) / _TICK
        return Process(pid, int(fields[1]), busy_s, int(fields[21]) * _PAGE)
    return None


def _ask_psutil(root: int) -> Iterator[Process]:
    import_now("psutil")
    import psutil  # slow: 20 ms, and Linux needs none

    with suppress(psutil.Error):
        process = psutil.Process(root)
        for child in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                times = child.cpu_times()
                busy_s = times.user + times.system
                yield Process(child.pid, child.ppid(), busy_s, child.memory_info().rss)
