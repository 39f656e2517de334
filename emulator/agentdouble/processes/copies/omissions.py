"""What a fork of a kernel lacks: threads, child processes, connections, pools, databases.

``omissions`` counts it in the kernel, before the fork. ``break_pools`` makes the pools in the fork
fail with a clear error, because their workers are gone and would be waited for.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from agentdouble.processes.fork_server import processes

# The header of a database: a magic text, and at 18 its "file format write version", which is 2 for
# a write-ahead log (https://www.sqlite.org/fileformat.html).
_SQLITE, _WITH_LOG = b"SQLite format 3\0", 2
_GONE = "its workers do not exist in this copy of the session: create a new one"


def omissions(
    own_threads: Collection[threading.Thread | None],
    templates: Collection[int] = (),
    *,
    own_view: bool = False,
) -> tuple[str, ...]:
    """Return what a fork of this process lacks, for example ``("2 threads",)``.

    ``own_threads`` are the kernel's own, which each kernel has; ``templates`` are the pids of those
    that were forked from it before. With ``own_view``, all named shared memory is the session's.
    """
    threads = [
        thread
        for thread in threading.enumerate()
        if thread is not threading.main_thread() and thread not in own_threads
    ]
    counts = {
        "thread": len(threads),
        "child process": len(set(processes.children(os.getpid())).difference(templates)),
        "network connection": _connections(),
        "writable SQLite connection": _sqlite_connections(),
        "named shared memory block": _unopened_shared_memory() if own_view else 0,
    }
    return tuple(
        f"{count} {name}{'' if count == 1 else 'es' if name.endswith('s') else 's'}"
        for name, count in counts.items()
        if count
    )


def _connections() -> int:
    """Return the number of this process's sockets that are connected to a network address."""
    count = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (a snapshot of the names)
        with contextlib.suppress(OSError):
            # socket.socket refuses other descriptors, and the copy would stay open
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as connection:
                    if connection.family in (socket.AF_INET, socket.AF_INET6):
                        connection.getpeername()
                        count += 1
    return count


def _sqlite_connections() -> int:
    """Return the number of SQLite databases that are open for writing with a rollback journal.

    A copy cannot write to them: SQLite compares the inode of an open database with that of its path
    (SQLITE_READONLY_DBMOVED), and the files of a copy have inodes of their own. It does not compare
    them if the database has a write-ahead log.
    """
    paths = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (a snapshot of the names)
        with contextlib.suppress(OSError):
            number = int(name)
            if stat.S_ISREG(os.fstat(number).st_mode):
                header = os.pread(number, 20, 0)
                writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
                if writable and header.startswith(_SQLITE) and header[18] != _WITH_LOG:
                    paths.add(os.readlink(f"/proc/self/fd/{name}"))  # noqa: PTH115
    return len(paths)


def zmq_contexts() -> int:
    """Return the number of contexts of ZMQ that have started their threads."""
    names = (Path(path, "comm") for path in Path("/proc/self/task").iterdir())
    return sum(name.read_bytes() == b"ZMQbg/Reaper\n" for name in names)


def _unopened_shared_memory() -> int:
    """Return the number of named blocks that this process has not mapped, such as a child's."""
    used = set(re.findall(r" (/dev/shm/.+)", Path("/proc/self/maps").read_text()))
    return sum(str(path) not in used for path in Path("/dev/shm").iterdir())  # noqa: S108


def pause_openmp() -> None:
    """End OpenMP's idle threads; otherwise a fork that uses OpenMP again would hang.

    See https://gcc.gnu.org/bugzilla/show_bug.cgi?id=60035.
    """
    with contextlib.suppress(OSError):
        maps = Path("/proc/self/maps").read_text()
        for path in {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "omp" in line}:
            if Path(path).name.startswith(("libgomp", "libomp", "libiomp")):
                with contextlib.suppress(OSError, AttributeError):
                    ctypes.CDLL(path).omp_pause_resource_all(2)  # 2: free its memory, too


def break_pools() -> None:
    """Make pools without workers refuse work, and child processes look killed."""
    gc.unfreeze()  # frozen objects are not listed
    pools = getattr(sys.modules.get("multiprocessing.pool"), "Pool", ThreadPoolExecutor)
    for tracked in gc.get_objects():
        if isinstance(tracked, subprocess.Popen) and tracked.returncode is None:
            tracked.returncode = -signal.SIGKILL
        elif isinstance(tracked, ThreadPoolExecutor | ProcessPoolExecutor):
            if getattr(tracked, "_threads", None) or getattr(tracked, "_processes", None):
                vars(tracked)["_broken"] = _GONE
        elif isinstance(tracked, pools):
            vars(tracked)["_state"] = "CLOSE"  # its methods then say that the pool is not running
