"""A session's namespaces: mounts, network, and users if an ordinary user creates them."""

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
        map_user("self", uid, gid)
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
        Path(f"/proc/sys/kernel/{name}").write_text(value)


def _join(pid: int, flags: int) -> None:
    """Join another process's namespaces."""
    # Inside a process namespace the pid is known only in /proc, which is still the host's.
    alone = flags == linux.CLONE_NEWNET
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) if alone else os.pidfd_open(pid)
    try:
        linux.join(descriptor, flags)
    finally:
        os.close(descriptor)


def map_user(pid: int | str, uid: int, gid: int) -> None:
    """Map a user and a group to themselves in the user namespace of a process."""
    of_process = Path(f"/proc/{pid}")
    (of_process / "uid_map").write_text(f"{uid} {uid} 1")
    (of_process / "setgroups").write_text("deny")  # the kernel requires it before gid_map
    (of_process / "gid_map").write_text(f"{gid} {gid} 1")


def raise_loopback() -> None:
    """Bring up the loopback device of this network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
