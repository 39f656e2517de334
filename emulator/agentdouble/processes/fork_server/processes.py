"""The processes of this one: adopt, limit, end and signal them; and the fork server's parent.

A signal reaches the intended process, or none. Linux shows a process of another process namespace
with the pid 0. A signal to 0, 1 or -1 would reach this process's own group, the init, or every
process. A pid may also have been reused since it was read.

A kernel dies when the fork server dies. Processes that the kernel has detached do not die, so the
fork server's parent, the guardian, adopts and ends them. If the guardian is killed instead, the
fork server ends all processes. If both are killed at the same moment, detached processes remain,
unless they are in a process namespace.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

from agentdouble.processes.fork_server import linux


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


def die_with_parent() -> None:
    """Make Linux kill this process when its parent ends."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """Return the pids of a process's children, except those in foreign process namespaces."""
    pids: list[int] = []
    tasks = f"/proc/{pid}/task"
    with suppress(OSError):
        for task in os.listdir(tasks):  # noqa: PTH208 (pathlib takes three times as long)
            with suppress(OSError), open(f"{tasks}/{task}/children", "rb", buffering=0) as file:  # noqa: PTH123
                pids += (child for child in map(int, file.read().split()) if child > 1)
    return pids


def kill_children(parent: int, *, but: Collection[int] = ()) -> list[int]:
    """Kill a process's children, except ``but``, and their descendants; return the children's pids.

    They are stopped first, so that none of them forks meanwhile. None is killed where /proc is that
    of another process namespace, because its pids mean other processes there.
    """
    if os.path.realpath("/proc/self") != f"/proc/{os.getpid()}":
        return []
    killed = [pid for pid in children(parent) if pid not in but]
    for pid in killed:
        _send_to_child(parent, pid, signal.SIGSTOP)
        kill_children(pid)
        _send_to_child(parent, pid, signal.SIGKILL)
    return killed


def _send_to_child(parent: int, pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        send(pid, number, lambda: pid in children(parent))


def end_children(*, but: Collection[int] = ()) -> None:
    """Kill this process's children, except ``but``, and their descendants; wait for them."""
    while ending := kill_children(os.getpid(), but=but):
        wait_for_one(ending)  # some end only after another has been waited for
        for pid in ending:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def wait_for_one(pids: Iterable[int]) -> None:
    """Wait until one of these processes has ended."""
    poll = select.poll()
    opened = []
    try:
        for pid in pids:
            opened.append(os.pidfd_open(pid))
            poll.register(opened[-1], select.POLLIN)
        poll.poll()
    except ProcessLookupError:
        return
    finally:
        for pidfd in opened:
            os.close(pidfd)


def pid_of(pidfd: int) -> int:
    """Return the pid of a pidfd's process in this process's namespace; raise OSError if it ended."""
    with open(f"/proc/self/fdinfo/{pidfd}") as file:  # noqa: PTH123
        pid = next(int(line.split()[1]) for line in file if line.startswith("Pid:"))
    if pid <= 0:
        raise ProcessLookupError("the process has ended")
    return pid


def lower_limit(kind: int, value: int) -> None:
    """Lower a limit of this process and its children, at most to what the hard limit allows."""
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


ASKED_TO_END = signal.SIGTERM


def stand_behind() -> None:
    """Fork; return only in the child, which becomes the fork server.

    The parent never returns. It keeps its descriptors open until no process is left.
    """
    adopt_orphans()
    guardian = os.getpid()
    if server := os.fork():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        with suppress(ChildProcessError):
            while os.wait()[0] != server:
                pass
        end_children()
        os._exit(0)
    os.setsid()  # so a signal to the guardian's group does not reach both
    linux.prctl(linux.PR_SET_PDEATHSIG, ASKED_TO_END)
    if os.getppid() != guardian:
        os._exit(1)
