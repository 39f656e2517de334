"""Namespaces of a session's own: mounts, network, and the users that an ordinary user needs."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from pathlib import Path

from agentdouble.processes.fork_server import linux

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1


def enter(*, user: bool, network: bool, beside: int | None = None) -> None:
    """Move into new namespaces; an ordinary user may only inside a ``user`` namespace.

    ``beside`` is the pid of a process whose network, and user namespace, is joined instead of
    a new one made. Shared memory and queues that have no file are always this process's own.
    """
    own = (linux.CLONE_NEWUSER if user else 0) | (linux.CLONE_NEWNET if network else 0)
    if beside is not None:
        _join(beside, own)
        own = 0
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(own | linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
    if own & linux.CLONE_NEWUSER:
        _stay(uid, gid)
    # nothing goes out; what the host unmounts goes here too, else it would stay busy
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_SLAVE)
    if own & linux.CLONE_NEWNET:
        _raise_loopback()


def _join(pid: int, flags: int) -> None:
    process = os.pidfd_open(pid)
    try:
        linux.join(process, flags)
    finally:
        os.close(process)


def _stay(uid: int, gid: int) -> None:
    """Be the same user and group inside the new user namespace."""
    own = Path("/proc/self")
    (own / "uid_map").write_text(f"{uid} {uid} 1")
    (own / "setgroups").write_text("deny")  # the kernel asks for it before gid_map
    (own / "gid_map").write_text(f"{gid} {gid} 1")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
