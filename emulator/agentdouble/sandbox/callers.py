"""Who is at the other end of a connection from this machine: a person's program, or a session.

Linux says which user a socket belongs to, and which processes have it open. Sessions that are
users of their own are known by that; for others the socket is looked for: somewhere outside
all sessions it must be open.
"""

from __future__ import annotations

import ipaddress
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentdouble.processes import isolation
from agentdouble.sandbox import socket_lookup

Address = tuple[str, int]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ROW = rb"^ *\d+: ([0-9A-F]+):%04X ([0-9A-F]+):%04X \S+ \S+ \S+ \S+ +(\d+) +\d+ (\d+) "


@dataclass(frozen=True)
class _Socket:
    """A socket's user and inode; the inode is 0 when no process has it open any more."""

    uid: int
    inode: int


@dataclass(frozen=True)
class Callers:
    """Tells callers that are code of a session.

    ``roots`` returns the processes below which code runs as the double's own user.
    """

    roots: Callable[[], Iterable[int]]

    def is_session(self, client: Address, server: Address) -> bool:
        """Return whether the caller is, or may be, a session's; blocks for some milliseconds.

        One that has gone may have been. Where the machine does not tell, nobody is.
        """
        if not available():
            return False
        found = _find(client, server)
        return found is None or self._is_suspect(found)

    def _is_suspect(self, socket: _Socket) -> bool:
        if socket.inode == 0 or isolation.is_session_user(socket.uid):
            return True
        if socket.uid != os.geteuid() or _has_open(os.getpid(), socket.inode):
            return False
        roots = [*self.roots()]
        return bool(roots) and not _is_open_elsewhere(socket.inode, roots)


def available() -> bool:
    """Return whether this machine tells whose a socket is."""
    return _TABLES[0].exists()


def _find(client: Address, server: Address) -> _Socket | None:
    """Return the caller's socket; the kernel takes 5 ms to show a table, so it comes last."""
    near, far = (
        _plain(ipaddress.ip_address(host.partition("%")[0])) for host, _ in (client, server)
    )
    found = socket_lookup.look_up((near, client[1]), (far, server[1]))
    if found is not None:
        return _Socket(*found)
    pattern = re.compile(_ROW % (client[1], server[1]), re.MULTILINE)
    for table in filter(Path.exists, _TABLES):
        for local, remote, uid, inode in pattern.findall(table.read_bytes()):
            if (_address(local), _address(remote)) == (near, far):
                return _Socket(int(uid), int(inode))
    return None


def _address(shown: bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read an address as the kernel shows it: words of 32 bits in this machine's order."""
    raw = bytes.fromhex(shown.decode())
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    return _plain(ipaddress.ip_address(struct.pack(f"!{len(words)}I", *words)))


def _plain(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return getattr(address, "ipv4_mapped", None) or address


def _is_open_elsewhere(inode: int, roots: Iterable[int]) -> bool:
    """Return whether a process outside these trees has the socket open, and none inside."""
    parents = {pid: _parent(pid) for pid in _processes()}
    holders = [pid for pid in parents if _has_open(pid, inode)]
    inside = set(roots)
    return bool(holders) and not any(inside & {*_lineage(pid, parents)} for pid in holders)


def _lineage(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid:
        yield pid
        pid = parents.get(pid, 0)


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal())


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def _has_open(pid: int, inode: int) -> bool:
    """Return whether a process has a socket open; what cannot be looked into has not."""
    wanted = f"socket:[{inode}]"
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
        for one in descriptors:
            with suppress(OSError):
                if os.readlink(one.path) == wanted:  # noqa: PTH115 (one of hundreds)
                    return True
    return False
