"""The confinement of a kernel, and the measures that enforce it; Linux only.

A session's code is confined in the new fork, while the fork is single-threaded and before it is a
kernel. If a requested measure cannot be applied, the child ends, so nothing runs less confined than
requested. ``processes.isolation`` finds out which measures this machine offers.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import Literal

from agentdouble.processes.fork_server import linux, namespaces, processes, restrictions, view

MIB = 1024 * 1024


@dataclass(frozen=True)
class Confinement:
    """What a kernel may access; as JSON, the ``confinement`` of a fork request.

    ``home``, ``tmp`` and ``run`` are the directories that the kernel may write to; ``root``
    contains those of all sessions. ``namespaces`` gives it its own view of the file system, in
    which the first two are ``/home/gem`` and ``/tmp``; "plain" is for root, "user" for an ordinary
    user. ``uid`` is the user that it becomes; only root can set it.

    ``network`` "own" has only its own loopback device and needs ``namespaces``. ``network_of`` is
    the pid of a kernel whose own network it joins. With ``processes`` "own", the kernel sees only
    the session's processes; this needs ``namespaces``, and this process must have been forked into
    the session's ``ProcessNamespace``.

    ``landlock`` restricts files and signals. ``visible`` are readable paths in addition to the
    system's and Python's. ``masked`` are paths of the system that look empty; this needs
    ``namespaces``. ``writable`` are paths that Landlock lets the kernel write to, in addition to
    its own. With ``own_limits``, a process can set only its own limits. ``process_limit`` counts
    the user's processes and threads, so it needs a separate ``uid`` for the session or
    ``namespaces`` "user".

    Sizes are in bytes. ``shared_memory`` limits all segments without a file; only root can set it.
    """

    home: str
    tmp: str
    run: str
    root: str | None = None
    uid: int | None = None
    namespaces: Literal["plain", "user"] | None = None
    network: Literal["shared", "own"] = "shared"
    network_of: int | None = None
    processes: Literal["shared", "own"] = "shared"
    landlock: bool = False
    visible: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    own_limits: bool = False
    process_limit: int | None = None
    shm_size: int = 64 * MIB
    shared_memory: int | None = None


def confine(confinement: Confinement) -> None:
    """Apply a confinement to this process; raise OSError if a measure cannot be applied."""
    parent = os.getppid()
    home, tmp = confinement.home, confinement.tmp
    os.environ.update(USER=view.USER, LOGNAME=view.USER)  # its uid may have no name
    if confinement.uid is not None:
        give(confinement.run, confinement.uid)
    if confinement.namespaces is not None:
        _enter_namespaces(confinement)
        home, tmp = view.HOME, view.TMP
        os.environ.update(HOME=home, TMPDIR=tmp)
    if confinement.uid is not None:
        _become(confinement.uid)
    give_up_rights()
    if confinement.processes == "shared":
        processes.die_with_parent()  # again: Linux forgets this when the user changes
        if os.getppid() != parent:
            raise ProcessLookupError("the fork server has ended")
    if confinement.own_limits:
        restrictions.refuse_limits_of_others()
    if confinement.landlock:
        _restrict(confinement, home, tmp)
    if confinement.process_limit is not None:
        processes.lower_limit(resource.RLIMIT_NPROC, confinement.process_limit)
    os.chdir(home)


def give(directory: str, uid: int) -> None:
    """Change the owner of a directory and the files in it, which the server has owned until now."""
    for name in os.listdir(directory):  # noqa: PTH208 (pathlib would make each fork slower)
        os.chown(f"{directory}/{name}", uid, uid, follow_symlinks=False)
    os.chown(directory, uid, uid)


def _enter_namespaces(rules: Confinement) -> None:
    user = rules.namespaces == "user"
    own_processes = rules.processes == "own"
    namespaces.enter(
        user=user and not own_processes,
        shared_memory=not own_processes,
        network=rules.network == "own",
        network_of=rules.network_of,
    )
    if rules.shared_memory is not None:
        namespaces.limit_shared_memory(rules.shared_memory)
    view.enter(
        home=rules.home,
        tmp=rules.tmp,
        run=rules.run,
        root=rules.root,
        visible=rules.visible,
        shm_size=rules.shm_size,
        own_processes=own_processes,
    )
    uid, gid = (os.geteuid(), os.getegid()) if rules.uid is None else (rules.uid, rules.uid)
    view.mask(rules.masked)
    view.name_user(uid, gid)
    view.seal()


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def give_up_rights() -> None:
    """Drop every capability, including those that an executed program would gain."""
    linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    # A change of user clears this flag, and then /proc/self cannot be read.
    linux.prctl(linux.PR_SET_DUMPABLE, 1)


def _restrict(confinement: Confinement, home: str, tmp: str) -> None:
    if confinement.namespaces is not None:
        # The view contains only readable files, and marks the writable ones. A rule for
        # each directory would restrict a copy of the kernel to its source's directories.
        readable, writable = [], ["/"]
    else:
        readable = [*view.readable(confinement.visible, confinement.run), "/proc"]
        devices = [*view.DEVICES, "/dev/ptmx", "/dev/pts", "/dev/shm"]  # noqa: S108
        writable = [home, tmp, confinement.run, *devices, *confinement.writable]
    restrictions.restrict(
        readable=readable,
        writable=writable,
        signals=confinement.processes
        == "shared",  # else the session's processes may signal each other
    )
