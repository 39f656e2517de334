"""What a fork of a kernel does not carry: threads, child processes, connections, pools, timers.

``left_out`` counts it in the kernel, before the fork. ``break_pools`` makes the pools in the fork
fail with a clear error, because their workers are gone and would be waited for.
"""

from __future__ import annotations

import contextlib
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

_GONE = "its workers are not in the copy of the session: make a new one"


def left_out(
    own_threads: Collection[threading.Thread | None],
    templates: Collection[int] = (),
    *,
    own_view: bool = False,
) -> tuple[str, ...]:
    """Return what of this process a fork does not carry, for example ``("2 threads",)``.

    ``own_threads`` are the kernel's own, which each kernel has; ``templates`` are the pids of those
    that were forked from it before. With ``own_view``, all named shared memory is the session's.
    """
    threads = [
        one
        for one in threading.enumerate()
        if one is not threading.main_thread() and one not in own_threads
    ]
    counts = {
        "thread": len(threads),
        "child process": len(set(processes.children(os.getpid())).difference(templates)),
        "network connection": _connections(),
        "named shared memory block": _unopened_shared_memory() if own_view else 0,
    }
    return tuple(
        f"{count} {name}{'' if count == 1 else 'es' if name.endswith('s') else 's'}"
        for name, count in counts.items()
        if count
    )


def _connections() -> int:
    """Return the number of this process's sockets that are connected to a network address."""
    found = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (a snapshot of the names)
        with contextlib.suppress(OSError):
            # socket.socket refuses what is no socket, and then the copy would stay open
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    if one.family in (socket.AF_INET, socket.AF_INET6):
                        one.getpeername()
                        found += 1
    return found


def zmq_contexts() -> int:
    """Return the number of contexts of ZMQ that have started their threads."""
    names = (Path(path, "comm") for path in Path("/proc/self/task").iterdir())
    return sum(name.read_bytes() == b"ZMQbg/Reaper\n" for name in names)


def _unopened_shared_memory() -> int:
    """Return the number of named blocks that this process does not use, or only a child does."""
    used = set(re.findall(r" (/dev/shm/.+)", Path("/proc/self/maps").read_text()))
    return sum(str(path) not in used for path in Path("/dev/shm").iterdir())  # noqa: S108


def pause_openmp() -> None:
    """End the idle threads of OpenMP, which hang in a fork that uses OpenMP again.

    See https://gcc.gnu.org/bugzilla/show_bug.cgi?id=60035.
    """
    import ctypes

    with contextlib.suppress(OSError):
        maps = Path("/proc/self/maps").read_text()
        for path in {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "omp" in line}:
            if Path(path).name.startswith(("libgomp", "libomp", "libiomp")):
                with contextlib.suppress(OSError, AttributeError):
                    ctypes.CDLL(path).omp_pause_resource_all(2)  # 2: also its memory


def break_pools() -> None:
    """Make pools without their workers refuse work, and child processes look killed."""
    gc.unfreeze()  # what is frozen is not listed
    pools = getattr(sys.modules.get("multiprocessing.pool"), "Pool", ThreadPoolExecutor)
    for one in gc.get_objects():
        if isinstance(one, subprocess.Popen) and one.returncode is None:
            one.returncode = -signal.SIGKILL
        elif isinstance(one, ThreadPoolExecutor | ProcessPoolExecutor):
            if getattr(one, "_threads", None) or getattr(one, "_processes", None):
                vars(one)["_broken"] = _GONE
        elif isinstance(one, pools):
            vars(one)["_state"] = "CLOSE"  # its methods then say that the pool is not running
