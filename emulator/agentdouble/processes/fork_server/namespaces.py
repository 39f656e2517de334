"""A session's namespaces: mounts, network, processes, and users if an ordinary user creates them.

Each session has its own process namespace, as a container has, with a waiting init. The session's
kernels, terminals and browser see and reach only each other, with any system call. All processes in
a namespace end with it. The init is a separate process, because by default signals do nothing to
process 1. It is a ``cat`` of 0.1 MiB, and keeps the session's shared memory and queues. It ends with
the fork server, because it reads from a pipe to which only the fork server has the other end.

The processes that the fork server forks into a namespace are its own children, so their pidfds and
exit codes are real. An ordinary user's process cannot return from a namespace, so there a child
process, the helper, enters it and forks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import socket
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from agentdouble.processes.fork_server import linux, processes

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_QUEUES_AND_SEMAPHORES = {"msgmni": "256", "sem": "250 32000 32 128"}  # 16 KiB a queue
_CAT = shutil.which("cat") or "/bin/cat"  # found now, because a session's code may change PATH


def enter(
    *, user: bool, network: bool, shared_memory: bool = True, network_of: int | None = None
) -> None:
    """Move this process into new namespaces; an ordinary user needs a new ``user`` namespace.

    ``network_of`` is the pid, outside, of another process. This process then joins that process's
    network and user namespaces instead of new ones. ``shared_memory`` adds a namespace for shared
    memory and queues without a file.
    """
    new = (linux.CLONE_NEWUSER if user else 0) | (linux.CLONE_NEWNET if network else 0)
    memory = linux.CLONE_NEWIPC if shared_memory else 0
    if network_of is not None:
        _join(network_of, new)
        new = 0
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(new | linux.CLONE_NEWNS | memory)
    if new & linux.CLONE_NEWUSER:
        _map_user(uid, gid)
    # Mounts here do not reach the host. The host's unmounts reach this namespace; otherwise those
    # mounts would stay busy.
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_SLAVE)
    if new & linux.CLONE_NEWNET:
        raise_loopback()


def limit_shared_memory(limit: int) -> None:
    """Limit the objects that exist in this namespace without a process.

    All shared memory segments together have ``limit`` bytes. Queues and semaphores have a few MiB,
    because Linux by default allows gigabytes.
    """
    pages = limit // os.sysconf("SC_PAGE_SIZE")
    for name, value in {"shmall": str(pages), **_QUEUES_AND_SEMAPHORES}.items():
        with open(f"/proc/sys/kernel/{name}", "wb", buffering=0) as file:  # noqa: PTH123 (0.2 ms)
            file.write(value.encode())


def _join(pid: int, flags: int) -> None:
    """Join another process's namespaces."""
    # Inside a process namespace the pid is known only in /proc, which is still the host's.
    alone = flags == linux.CLONE_NEWNET
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) if alone else os.pidfd_open(pid)
    try:
        linux.join(descriptor, flags)
    finally:
        os.close(descriptor)


def _map_user(uid: int, gid: int) -> None:
    """Map a user and a group to themselves in this process's new user namespace."""
    # Linux requires setgroups before gid_map.
    maps = {"uid_map": f"{uid} {uid} 1", "setgroups": "deny", "gid_map": f"{gid} {gid} 1"}
    for name, text in maps.items():
        with open(f"/proc/self/{name}", "wb", buffering=0) as file:  # noqa: PTH123 (0.2 ms)
            file.write(text.encode())


def raise_loopback() -> None:
    """Bring up the loopback device of this network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


class ProcessNamespaces:
    """The process namespaces that one single-threaded process has made, by the session's home.

    ``make_init`` forks the init of a new namespace, for root; it gets the pipe that the init reads.
    """

    def __init__(self, make_init: Callable[[int], int] | None = None) -> None:
        self._of: dict[str, ProcessNamespace] = {}
        self._make_init = make_init or fork_init
        self._lifeline = os.pipe()

    @property
    def keepers(self) -> set[int]:
        """The pids of the inits of all namespaces, and of the helpers that have not ended yet."""
        return {pid for it in self._of.values() for pid in (it.init, *it.helpers)}

    def fork(self, confinement: Mapping[str, Any] | None) -> int:
        """Fork as ``os.fork`` does, into the session's namespace if the confinement has one."""
        if confinement is None or confinement["processes"] == "shared":
            return os.fork()
        home = confinement["home"]
        if home not in self._of:
            self._of[home] = self._new(user=confinement["namespaces"] == "user")
        try:
            return self._of[home].fork()
        except OSError:
            self._forget(home)
            raise

    def retain(self, home: str, pid: int) -> None:
        """Keep a namespace alive as long as a process that a member has forked."""
        if home in self._of:
            self._of[home].members.add(pid)

    def init_of(self, home: str) -> int:
        """Return the pid of the init of a session's namespace; raise OSError without one."""
        if home not in self._of:
            raise OSError(errno.ECHILD, "the process namespace of its source has ended")
        return self._of[home].init

    def end_left_by(self, ended: Collection[int], but: Collection[int] = ()) -> None:
        """End the processes that members left in their namespaces; ``ended`` are reaped pids.

        It spares the processes in ``but``; they stay in their namespaces.
        """
        for namespace in self._of.values():
            namespace.alive = namespace.alive and namespace.init not in ended
            namespace.helpers -= {*ended}
        for home, namespace in [*self._of.items()]:
            if namespace.members & {*ended}:
                namespace.members -= {*ended}
                namespace.end_left(but)
                self._forget(home)

    def kill(self) -> None:
        """Kill all processes in the namespaces, without waiting for their end."""
        for namespace in self._of.values():
            namespace.kill()

    def leave(self) -> None:
        """Close the pipe in a new member, which otherwise would keep the inits alive."""
        for end in self._lifeline:
            os.close(end)

    def _new(self, *, user: bool) -> ProcessNamespace:
        reading, _ = self._lifeline
        return (
            ProcessNamespace(reading) if user else ProcessNamespace(init=self._make_init(reading))
        )

    def _forget(self, home: str) -> None:
        if not self._of[home].members:
            self._of.pop(home).end()


class ProcessNamespace:
    """A process namespace; it exists until ``end`` or ``kill`` is called.

    For root it has an ``init``. For an ordinary user, who also needs a user namespace, the helper
    of the first member makes both, and the init reads ``lifeline``. ``members`` are the processes
    that were forked into it and have not been waited for. ``helpers`` are ending: each is the
    parent of a new member until it has ended. ``alive`` says whether the init is alive.
    """

    def __init__(self, lifeline: int | None = None, init: int = 0) -> None:
        self.members: set[int] = set()
        self.helpers: set[int] = set()
        self.init = init
        self.alive = True
        self._lifeline = lifeline

    def fork(self) -> int:
        """Fork a member, as ``os.fork`` does; raise OSError."""
        if not self.alive:
            raise OSError(errno.ECHILD, "the session's processes are being ended")
        outside = os.getpid()
        try:
            pid = self._fork() if self._lifeline is None else self._fork_by_helper(self._lifeline)
        except BaseException:
            if os.getpid() != outside:
                os._exit(1)  # a failed member must not continue as a copy of its parent
            raise
        if pid:
            self.members.add(pid)
        return pid

    def end_left(self, but: Collection[int]) -> None:
        """End the processes that ended members have left; the init has adopted them."""
        while self.alive and self.members and (pids := processes.kill_children(self.init, but=but)):
            processes.wait_for_one(pids)

    def end(self) -> None:
        """End all processes in the namespace and wait for the init; no member may be left."""
        self.kill()
        if self.alive and self.init:
            os.waitpid(self.init, 0)
        self.alive = False

    def kill(self) -> None:
        """Kill all processes in the namespace."""
        if self.alive and self.init:
            processes.send(self.init, signal.SIGKILL)

    def _fork(self) -> int:
        with _pidfd(self.init) as init:
            pid = fork_inside(init)
            if pid == 0:
                linux.join(init, linux.CLONE_NEWIPC)
            return pid

    def _fork_by_helper(self, lifeline: int) -> int:
        """Fork in a child that enters the namespace, because an ordinary user could not return.

        When that child ends, the member becomes this process's own child, as does the init. The end
        of a large process takes milliseconds, so it is not awaited: whoever waits for any child
        reaps it.
        """
        reading, writing = os.pipe()
        helper = os.fork()
        if helper == 0:
            os.close(reading)
            self._help(lifeline, writing)
            os.close(writing)
            return 0
        self.helpers.add(helper)
        os.close(writing)
        with os.fdopen(reading, "rb") as answer:
            init, member, error = map(int, answer.read().split() or (0, 0, errno.ECHILD))
        self.init = self.init or init
        if error:
            os.waitpid(helper, 0)  # then the init is this process's child
            self.helpers.discard(helper)
            raise OSError(error, os.strerror(error))
        return member

    def _help(self, lifeline: int, writing: int) -> None:
        """Fork the member and end this process; return only in the member."""
        init, member, error = self.init, -1, errno.ECHILD
        try:
            if init:
                with _pidfd(init) as inside:
                    user = linux.CLONE_NEWUSER
                    linux.join(inside, user | linux.CLONE_NEWPID | linux.CLONE_NEWIPC)
            else:
                init = _spawn_init(lifeline)
            member, error = os.fork(), 0
        except OSError as failure:
            error = failure.errno or errno.ECHILD
        finally:
            if member:
                os.write(writing, b"%d %d %d" % (init, member, error))
                os._exit(0)


def fork_inside(process: int) -> int:
    """Fork as ``os.fork`` does, into the process namespace of a pidfd's process, as root."""
    with _pidfd(os.getpid()) as outside:
        linux.join(process, linux.CLONE_NEWPID)  # affects only children, not this process
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:
                linux.join(outside, linux.CLONE_NEWPID)
        return pid


def _spawn_init(lifeline: int) -> int:
    """Move this process's children to a new namespace, and start its init without a fork."""
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWPID | linux.CLONE_NEWIPC)
    _map_user(uid, gid)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the init inherits this, so it reaps children
    if uid:
        # Code in the namespace lacks this capability, so Linux does not let it inspect the init.
        linux.pass_on_capability(linux.CAP_SYS_PTRACE)
    closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable()]
    pipe = (os.POSIX_SPAWN_DUP2, lifeline, 0)
    init = os.posix_spawn(_CAT, [_CAT], {}, file_actions=[pipe, *closed])
    # Otherwise Linux would reap a member that ends before this process does.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return init


def _inheritable() -> Iterator[int]:
    """Yield the descriptors that a program would inherit, other than the standard streams."""
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        with suppress(OSError):  # the listing's own descriptor is closed by now
            if number > 2 and os.get_inheritable(number):
                yield number


def fork_init(lifeline: int, flags: int = 0) -> int:
    """Fork the init of a new process namespace, as root; return its pid."""
    pid = linux.fork_into(linux.CLONE_NEWPID | linux.CLONE_NEWIPC | flags)
    if pid == 0:
        _be_init(lifeline)
    return pid


def _be_init(lifeline: int) -> NoReturn:
    """Run as process 1: keep nothing open but the pipe, and reap children."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.chdir("/")
        os.dup2(lifeline, 0)
        linux.close_from(3)
        os.execve(_CAT, [_CAT], {})  # noqa: S606 (no shell is wanted)
    finally:
        os._exit(1)


@contextmanager
def _pidfd(pid: int) -> Iterator[int]:
    opened = os.pidfd_open(pid)
    try:
        yield opened
    finally:
        with suppress(OSError):
            os.close(opened)
