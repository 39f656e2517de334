"""A session's own namespaces: mounts, network, and the users that an ordinary user needs."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from pathlib import Path

from agentdouble.processes.fork_server import linux

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_QUEUES_AND_SEMAPHORES = {"msgmni": "256", "sem": "250 32000 32 128"}  # 16 KiB a queue


def enter(
    *, user: bool, network: bool, shared_memory: bool = True, network_of: int | None = None
) -> None:
    """Move into new namespaces; an ordinary user may only inside a ``user`` namespace.

    ``network_of`` is the pid, outside, of a process whose network, and user namespace, is joined
    instead of a new one made. ``shared_memory`` is that, and queues, without a file.
    """
    own = (linux.CLONE_NEWUSER if user else 0) | (linux.CLONE_NEWNET if network else 0)
    memory = linux.CLONE_NEWIPC if shared_memory else 0
    if network_of is not None:
        _join(network_of, own)
        own = 0
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(own | linux.CLONE_NEWNS | memory)
    if own & linux.CLONE_NEWUSER:
        _stay(uid, gid)
    # nothing goes out; what the host unmounts goes here too, else it would stay busy
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_SLAVE)
    if own & linux.CLONE_NEWNET:
        raise_loopback()


def limit_shared_memory(limit: int) -> None:
    """Limit what this namespace keeps without a process: segments, queues, semaphores.

    Segments have ``limit`` bytes together; the rest a few MiB, for Linux allows gigabytes of it.
    """
    pages = limit // os.sysconf("SC_PAGE_SIZE")
    for name, value in {"shmall": str(pages), **_QUEUES_AND_SEMAPHORES}.items():
        Path(f"/proc/sys/kernel/{name}").write_text(value)


def _join(pid: int, flags: int) -> None:
    """Join a process's namespaces; in a process namespace only /proc knows it, the host's still."""
    alone = flags == linux.CLONE_NEWNET
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) if alone else os.pidfd_open(pid)
    try:
        linux.join(there, flags)
    finally:
        os.close(there)


def _stay(uid: int, gid: int) -> None:
    """Be the same user and group inside the new user namespace."""
    own = Path("/proc/self")
    (own / "uid_map").write_text(f"{uid} {uid} 1")
    (own / "setgroups").write_text("deny")  # the kernel asks for it before gid_map
    (own / "gid_map").write_text(f"{gid} {gid} 1")


def raise_loopback() -> None:
    """Bring this network's own loopback device up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
