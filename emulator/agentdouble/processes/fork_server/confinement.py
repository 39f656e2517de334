"""What a kernel may reach, and the measures that hold it there; Linux only.

Applied in the freshly forked child, while it is single-threaded and before it runs any code.
Every measure that is asked for is applied, or the child ends: nothing runs less confined than
was asked. Which ones this machine offers, ``sandbox.isolation`` finds out.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import Literal

from agentdouble.processes.fork_server import landlock, linux, namespaces, processes, view

MIB = 1024 * 1024


@dataclass(frozen=True)
class Confinement:
    """What a kernel may reach; as JSON, the ``confinement`` of a fork request.

    ``home``, ``tmp`` and ``run`` are the directories it may write to. ``namespaces`` gives it
    a view of the file system of its own, in which the first two are ``/home/gem`` and
    ``/tmp``: "plain" is for root, "user" for an ordinary user. ``uid`` is the user that it
    becomes; only root can. ``network`` "own" has nothing but a loopback device of its own and
    needs ``namespaces``; ``beside`` is the pid of a kernel whose own network it joins.
    ``landlock`` holds files, signals and ``tcp_ports`` (those it may use; None for all).
    ``visible`` are paths to be read besides the system's and Python's; ``writable`` are paths
    that Landlock lets it write to besides its own.
    ``process_limit`` counts the user's processes and threads, so it needs a ``uid`` of the
    session's own or ``namespaces`` "user". Sizes are in bytes: one for ``home`` or ``tmp``
    keeps that directory in memory, empty at first and seen by this kernel alone.
    """

    home: str
    tmp: str
    run: str
    uid: int | None = None
    namespaces: Literal["plain", "user"] | None = None
    network: Literal["shared", "own"] = "shared"
    beside: int | None = None
    landlock: bool = False
    tcp_ports: tuple[int, ...] | None = None
    visible: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    process_limit: int | None = None
    home_size: int | None = None
    tmp_size: int | None = None
    shm_size: int = 64 * MIB


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
    if asked.uid is not None:
        _become(asked.uid)
    _give_up_rights(parent)
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
    namespaces.enter(user=user, network=asked.network == "own", beside=asked.beside)
    view.enter(
        home=asked.home,
        tmp=asked.tmp,
        run=asked.run,
        visible=asked.visible,
        home_size=asked.home_size,
        tmp_size=asked.tmp_size,
        shm_size=asked.shm_size,
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


def _give_up_rights(parent: int) -> None:
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    # a change of user clears both: /proc/self would be closed, the parent's death unnoticed
    linux.prctl(linux.PR_SET_DUMPABLE, 1)
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
    )
