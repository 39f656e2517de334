"""What a session uses: the memory of its processes, the room of its files."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

_BLOCK = 4096  # what an empty file costs: else a million of them were nothing


@dataclass(frozen=True)
class Process:
    """A process: its parent, the processor time it had (seconds), its resident memory (bytes)."""

    pid: int
    parent: int
    busy_s: float
    resident: int


class TooDeepError(Exception):
    """A directory lies deeper than Linux can name; what is in it cannot be counted."""


def processes() -> Mapping[int, Process]:
    """Return every process of this machine that can be seen, by pid."""
    found = _read_proc() if sys.platform == "linux" else _ask_psutil()
    return {process.pid: process for process in found}


def tree(roots: Iterable[int], table: Mapping[int, Process]) -> list[Process]:
    """Return those of some processes that live, and all their descendants."""
    below: dict[int, list[Process]] = {}
    for process in table.values():
        below.setdefault(process.parent, []).append(process)
    found, ahead = [], [table[pid] for pid in roots if pid in table]
    while ahead:
        found.append(ahead.pop())
        ahead += below.get(found[-1].pid, ())
    return found


def memory(session: Iterable[Process], limit: int) -> int:
    """Return the memory of a session's processes, in bytes.

    The quick sum counts what they share once for each; only a sum over ``limit`` is worth the
    exact one, which takes milliseconds.
    """
    processes = [*session]
    quick = sum(process.resident for process in processes)
    return quick if quick <= limit else sum(map(_proportional, processes))


def files(directories: Iterable[str], session: Iterable[Process], limit: int) -> int:
    """Return the room of what lies in directories, and of what is removed but open, in bytes.

    Counts no further than ``limit``. Raises TooDeepError.
    """
    total, linked = 0, set()
    total += sum(map(_room, _deleted(session)))
    for status in _below(directories):
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            if (status.st_dev, status.st_ino) in linked:
                continue
            linked.add((status.st_dev, status.st_ino))
        total += _room(status)
        if total > limit:
            break
    return total


def _room(status: os.stat_result) -> int:
    return max(_BLOCK, status.st_blocks * 512)


def _below(directories: Iterable[str]) -> Iterator[os.stat_result]:
    ahead = [*directories]
    while ahead:
        try:
            with os.scandir(ahead.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        if entry.is_dir(follow_symlinks=False):
                            ahead.append(entry.path)
                        yield entry.stat(follow_symlinks=False)
        except OSError as error:  # removed meanwhile, or closed to this user by its owner
            if error.errno == errno.ENAMETOOLONG:
                raise TooDeepError from None


def _deleted(session: Iterable[Process]) -> Iterator[os.stat_result]:
    """Return the files without a name that processes have open: on the disk, or in memory."""
    seen = set()
    for process in session if sys.platform == "linux" else ():
        with suppress(OSError), os.scandir(f"/proc/{process.pid}/fd") as descriptors:
            for one in descriptors:
                with suppress(OSError):
                    status = os.stat(one.path)  # noqa: PTH116 (one of thousands)
                    known = (status.st_dev, status.st_ino) in seen
                    if stat.S_ISREG(status.st_mode) and not status.st_nlink and not known:
                        seen.add((status.st_dev, status.st_ino))
                        yield status


def _proportional(process: Process) -> int:
    """Return a process's memory, with its share only of what it shares."""
    with suppress(psutil.Error, AttributeError):  # it has ended, hides, or the system cannot tell
        return int(psutil.Process(process.pid).memory_full_info().pss)
    return process.resident


def _read_proc() -> Iterator[Process]:
    """Read /proc directly: psutil takes three times as long."""
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir("/proc"):  # noqa: PTH208 (names are all that is needed)
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
                busy_s = (int(fields[11]) + int(fields[12])) / tick
                yield Process(int(name), int(fields[1]), busy_s, int(fields[21]) * page)


def _ask_psutil() -> Iterator[Process]:
    for process in psutil.process_iter(["ppid", "cpu_times", "memory_info"]):
        facts = process.info
        if facts["memory_info"] is not None and facts["cpu_times"] is not None:
            busy_s = facts["cpu_times"].user + facts["cpu_times"].system
            yield Process(process.pid, facts["ppid"], busy_s, facts["memory_info"].rss)
