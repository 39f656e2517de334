"""Tells a user's own programs from code that the double runs, when they call from this machine.

Linux reports which user owns a socket, and which processes have it open. A session that runs as a
user of its own is recognized by that user. For the other callers we look for the socket: a program
of a user has it open in a process outside the processes that the double runs.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble import socket_lookup
from agentdouble.addresses import address_of, is_loopback, plain
from agentdouble.processes import isolation, usage

if TYPE_CHECKING:
    from agentdouble.admission import Address, Caller


OUTSIDE = 0  # no process has this pid
NOWHERE = -1

_KNOWN = 4
_SOCKET = "socket:["

_Look = Mapping[int, Sequence[int]]  # from a socket's inode to the processes that have it open


class SocketOwners:
    """Finds in /proc the processes that have a socket open; belongs to one event loop.

    To read all processes takes about 20 ms. So calls that wait at the same time share one read,
    and the programs that have called before are tried first.
    """

    def __init__(self) -> None:
        self._running: asyncio.Task[_Look] | None = None
        self._next: asyncio.Task[_Look] | None = None
        self._known: deque[int] = deque(maxlen=_KNOWN)  # programs that have called before

    async def root(self, inode: int, roots: set[int]) -> int:
        """Return the process of ``roots`` that has a socket open, itself or in a descendant.

        Return ``OUTSIDE`` if only other processes have it open. Return ``NOWHERE`` if no process
        has it open, or if the answer is unknown because a process is just ending.
        """
        if await asyncio.to_thread(_is_of, (*self._known,), inode, roots):
            return OUTSIDE
        holders = (await self._look()).get(inode, ())
        found = await asyncio.to_thread(_root, holders, roots)
        if found == OUTSIDE:
            self._known.appendleft(holders[0])
        return found

    async def _look(self) -> _Look:
        """Return the result of a read of /proc that began after this call."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _after(self, earlier: asyncio.Task[_Look] | None) -> _Look:
        if earlier is not None:
            await asyncio.wait({earlier})
        self._running, self._next = self._next, None
        return await asyncio.to_thread(_look)


def _is_of(programs: Sequence[int], inode: int, roots: set[int]) -> bool:
    """Return whether this process or one of ``programs`` outside ``roots`` has a socket open."""
    return inode in _sockets(os.getpid()) or any(
        inode in _sockets(pid) and _root([pid], roots) == OUTSIDE for pid in programs
    )


def _root(holders: Sequence[int], roots: set[int]) -> int:
    found = [_root_of(pid, roots) for pid in holders]
    if not found or NOWHERE in found:
        return NOWHERE
    return max(found)  # a pid if there is one, else OUTSIDE


def _root_of(pid: int, roots: set[int]) -> int:
    while pid not in roots:
        parent = usage.parent_of(pid)
        if parent is None:
            return NOWHERE
        if parent == 0:
            return OUTSIDE
        pid = parent
    return pid


def _look() -> _Look:
    found: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdecimal():
            for inode in _sockets(int(entry)):
                found.setdefault(inode, []).append(int(entry))
    return found


def _sockets(pid: int) -> Sequence[int]:
    """Return the sockets that a process has open; return none if /proc hides its files."""
    found = []
    with suppress(OSError):
        for one in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with suppress(OSError):
                name = os.readlink(f"/proc/{pid}/fd/{one}")  # noqa: PTH115 (one of hundreds)
                if name.startswith(_SOCKET):
                    found.append(int(name[len(_SOCKET) : -1]))
    return found


Roots = Callable[[], Iterable[int]]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ROW = rb"^ *\d+: ([0-9A-F]+):%04X ([0-9A-F]+):%04X \S+ \S+ \S+ \S+ +(\d+) +\d+ (\d+) "
_ANY_PORT = 9  # nothing is sent there


@dataclass(frozen=True)
class _Socket:
    """A socket's user and inode; the inode is 0 when no process has it open any more."""

    uid: int
    inode: int


def _none() -> tuple[int, ...]:
    return ()


class Callers:
    """Recognizes callers that are code of a session or a runtime; belongs to one event loop.

    ``roots`` returns the processes whose descendants run code as the double's own user, or as
    another user that belongs to no session. ``runtimes`` returns the processes whose descendants
    are all runtimes.
    """

    def __init__(self, roots: Roots, runtimes: Roots = _none) -> None:
        self._roots = roots
        self._runtimes = runtimes
        self._holders = SocketOwners()

    async def caller(self, client: Address, server: Address) -> Caller:
        """Return what the caller is, or may be: a program, a session or a runtime.

        A caller that has disconnected counts as a session, because it may have been one. A caller
        on another machine is a program, and so is every caller if this machine does not report
        who owns a socket. This takes 0.05 ms. A thread reads the processes only if code runs as
        the double's own user.
        """
        if not available() or not _is_here(client[0]):
            return "program"
        found = _look_up(client, server) or await asyncio.to_thread(_read_tables, client, server)
        if found is None or found.inode == 0:
            return "session"
        of_session_user = isolation.is_session_user(found.uid)
        if not of_session_user and not self._may_be_hosted(found):
            return "program"
        runtimes = {*self._runtimes()}
        if of_session_user and not runtimes:
            return "session"
        root = await self._holders.root(found.inode, {*self._roots()} | runtimes)
        if root in runtimes:
            return "runtime"
        return "program" if root == OUTSIDE and not of_session_user else "session"

    def _may_be_hosted(self, found: _Socket) -> bool:
        return os.geteuid() in (0, found.uid) and any(True for _ in self._roots())


def available() -> bool:
    """Return whether this machine reports who owns a socket."""
    return _TABLES[0].exists()


def _is_here(host: str) -> bool:
    """Return whether an address is one of this machine's own."""
    if is_loopback(host):
        return True
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.connect((host, _ANY_PORT))
        return address_of(asking.getsockname()[0]) == address_of(host)
    return False


def _look_up(client: Address, server: Address) -> _Socket | None:
    near, far = address_of(client[0]), address_of(server[0])
    found = socket_lookup.look_up((near, client[1]), (far, server[1]))
    return None if found is None else _Socket(*found)


def _read_tables(client: Address, server: Address) -> _Socket | None:
    """Find the caller's socket in the tables of /proc, which take 5 ms each to read."""
    near, far = address_of(client[0]), address_of(server[0])
    pattern = re.compile(_ROW % (client[1], server[1]), re.MULTILINE)
    for table in filter(Path.exists, _TABLES):
        for local, remote, uid, inode in pattern.findall(table.read_bytes()):
            if (_address(local), _address(remote)) == (near, far):
                return _Socket(int(uid), int(inode))
    return None


def _address(shown: bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read an address of a table: words of 32 bits in this machine's byte order."""
    raw = bytes.fromhex(shown.decode())
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    return plain(ipaddress.ip_address(struct.pack(f"!{len(words)}I", *words)))
