"""Signals to other processes: each reaches the intended process, or none.

Linux shows a process of another process namespace with the pid 0. A signal to 0, 1 or -1 would
reach this process's own group, the init, or every process. A pid may also have been reused since it
was read.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def send(pid: int, number: int, is_meant: Callable[[], bool] = lambda: True) -> None:
    """Send a signal to a process; raise OSError.

    ``is_meant`` returns whether the pid still belongs to the intended process. On Linux it
    cannot be reused between that answer and the signal.
    """
    _check(pid)
    with _pidfd(pid) as pidfd:
        if not is_meant():
            raise ProcessLookupError(errno.ESRCH, f"the process {pid} has ended")
        if pidfd is None:
            os.kill(pid, number)  # noqa: TID251
        else:
            signal.pidfd_send_signal(pidfd, number)


def send_to_group(leader: int, number: int) -> None:
    """Send a signal to a process group; raise OSError."""
    _check(leader)
    os.killpg(leader, number)  # noqa: TID251


def _check(pid: int) -> None:
    if pid < 2:
        raise ProcessLookupError(errno.ESRCH, f"{pid} is not the pid of a single process")


@contextmanager
def _pidfd(pid: int) -> Iterator[int | None]:
    """Open a process, so that a signal reaches no later process; None where that is impossible."""
    pidfd = None
    if sys.platform == "linux":
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError:  # no descriptor is left, or a filter refuses the call
            pass
    try:
        yield pidfd
    finally:
        if pidfd is not None:
            os.close(pidfd)
