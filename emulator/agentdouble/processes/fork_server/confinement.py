"""What a kernel may reach, and the measures that enforce it; Linux only.

A session's code is confined in the new fork, while that is single-threaded and before it is a kernel.
Every measure that is asked for is taken, or the child ends: nothing runs less confined than was asked.
Which measures this machine offers, ``processes.isolation`` finds out.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import Literal

from agentdouble.processes.fork_server import (
    doorway,
    landlock,
    linux,
    namespaces,
    processes,
    seccomp,
    view,
)

MIB = 1024 * 1024


@dataclass(frozen=True)
class Confinement:
    """What a kernel may reach; as JSON, the ``confinement`` of a fork request.

    ``home``, ``tmp`` and ``run`` are the directories it may write to. ``namespaces`` gives it
    a view of the file system of its own, in which the first two are ``/home/gem`` and
    ``/tmp``: "plain" is for root, "user" for an ordinary user. ``uid`` is the user that it
    becomes; only root can. ``network`` "own" has nothing but a loopback device of its own and
    needs ``namespaces``; ``network_of`` is the pid of a kernel whose own network it joins. Of
    ``port`` it has its own, which the double alone reaches; needs ``namespaces``, too.
    ``processes`` "own" needs ``namespaces``, and that this process was forked into the session's
    ``ProcessNamespace``: it sees the session's processes alone.
    ``landlock`` holds files, signals and ``tcp_ports`` (those it may use; None for all).
    ``visible`` are paths to be read besides the system's and Python's; ``writable`` are paths
    that Landlock lets it write to besides its own.
    ``own_limits`` is to set limits of no process but the calling one.
    ``process_limit`` counts the user's processes and threads, so it needs a ``uid`` of the
    session's own or ``namespaces`` "user". Sizes are in bytes: one for ``home`` or ``tmp``
    keeps that directory in memory, empty at first and seen by this kernel alone; that of
    ``shared_memory`` is for all segments that have no file, and can be set by root.
    """

    home: str
    tmp: str
    run: str
    uid: int | None = None
    namespaces: Literal["plain", "user"] | None = None
    network: Literal["shared", "own"] = "shared"
    network_of: int | None = None
    processes: Literal["shared", "own"] = "shared"
    port: int | None = None
    landlock: bool = False
    tcp_ports: tuple[int, ...] | None = None
    visible: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    own_limits: bool = False
    process_limit: int | None = None
    home_size: int | None = None
    tmp_size: int | None = None
    shm_size: int = 64 * MIB
    shared_memory: int | None = None


def confine(asked: Confinement) -> None:
    """Apply a confinement to this process; raise OSError if a measure cannot be taken."""
    parent = os.getppid()
    home, tmp = asked.home, asked.tmp
    os.environ.update(USER=view.USER, LOGNAME=view.USER)  # its uid may have no name
    if asked.uid is not None:
        _give(asked.run, asked.uid)
    if asked.namespaces is not None:
        _enter_namespaces(asked)
        home, tmp = view.HOME, view.TMP
        os.environ.update(HOME=home, TMPDIR=tmp)
    if asked.port is not None:
        doorway.keep_to_double(asked.run, asked.port)
    if asked.uid is not None:
        _become(asked.uid)
    _give_up_rights()
    if asked.processes == "shared":
        _die_with(parent)
    if asked.own_limits:
        seccomp.refuse_limits_of_others()
    if asked.landlock:
        _restrict(asked, home, tmp)
    if asked.process_limit is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (asked.process_limit,) * 2)
    os.chdir(home)


def _give(directory: str, uid: int) -> None:
    """Hand the kernel the directory of its connection file, which was the server's until now."""
    for name in os.listdir(directory):  # noqa: PTH208 (pathlib would make each fork slower)
        os.chown(f"{directory}/{name}", uid, uid, follow_symlinks=False)
    os.chown(directory, uid, uid)


def _enter_namespaces(asked: Confinement) -> None:
    user = asked.namespaces == "user"
    own = asked.processes == "own"
    namespaces.enter(
        user=user and not own,
        shared_memory=not own,
        network=asked.network == "own",
        network_of=asked.network_of,
    )
    if asked.shared_memory is not None:
        namespaces.limit_shared_memory(asked.shared_memory)
    view.enter(
        home=asked.home,
        tmp=asked.tmp,
        run=asked.run,
        visible=asked.visible,
        home_size=asked.home_size,
        tmp_size=asked.tmp_size,
        shm_size=asked.shm_size,
        own_processes=own,
    )
    uid, gid = (os.geteuid(), os.getegid()) if asked.uid is None else (asked.uid, asked.uid)
    for path, size in ((view.HOME, asked.home_size), (view.TMP, asked.tmp_size)):
        if size is not None:
            os.chown(path, uid, gid)
    view.name_user(uid, gid)
    view.seal()


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _give_up_rights() -> None:
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # a change of user clears it, and /proc/self is closed


def _die_with(parent: int) -> None:
    """Ask for it again: a change of user has Linux forget it."""
    processes.die_with_parent()
    if os.getppid() != parent:
        raise ProcessLookupError("the fork server has ended")


def _restrict(asked: Confinement, home: str, tmp: str) -> None:
    if asked.namespaces is not None:  # what must not be read is not there
        readable, devices = ["/"], ["/dev"]
    else:
        readable = [*view.readable(asked.visible, asked.run), "/proc"]
        devices = [*view.DEVICES, "/dev/ptmx", "/dev/pts", "/dev/shm"]  # noqa: S108
    landlock.restrict(
        readable=readable,
        writable=(home, tmp, asked.run, *devices, *asked.writable),
        tcp_ports=asked.tcp_ports,
        signals=asked.processes == "shared",  # of a session's own they may reach each other
    )
