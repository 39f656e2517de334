"""Who calls from this machine: a person's program, or code that the double runs for somebody.

Linux tells which user a socket belongs to, and which processes have it open. A session that is a
user of its own is known by that user. For other callers we look for the socket: it must be open
in a process outside all that the double runs.
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
from agentdouble.processes import isolation

if TYPE_CHECKING:
    from agentdouble.admission import Address, Caller


OUTSIDE = 0  # no pid of a process
NOWHERE = -1

_KNOWN = 4
_SOCKET = "socket:["

_Look = Mapping[int, Sequence[int]]  # by a socket's inode the processes that have it open


class SocketOwners:
    """Finds the processes that have a socket open, in /proc; belongs to one event loop.

    Looking through all processes takes some 20 ms, so one look answers everybody who waits for
    one, and programs that have called before are tried first.
    """

    def __init__(self) -> None:
        self._running: asyncio.Task[_Look] | None = None
        self._next: asyncio.Task[_Look] | None = None
        self._known: deque[int] = deque(maxlen=_KNOWN)  # programs that have called before

    async def root(self, inode: int, roots: set[int]) -> int:
        """Return the process of ``roots`` below which a socket is open.

        It is ``OUTSIDE`` where only others have it open, and ``NOWHERE`` where nobody has, or
        that is unknown because a process ends just now.
        """
        if await asyncio.to_thread(_is_of, (*self._known,), inode, roots):
            return OUTSIDE
        holders = (await self._look()).get(inode, ())
        found = await asyncio.to_thread(_root, holders, roots)
        if found == OUTSIDE:
            self._known.appendleft(holders[0])
        return found

    async def _look(self) -> _Look:
        """Return the findings of a look that began after this call."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _after(self, earlier: asyncio.Task[_Look] | None) -> _Look:
        if earlier is not None:
            await asyncio.wait({earlier})
        self._running, self._next = self._next, None
        return await asyncio.to_thread(_look)


def _is_of(programs: Sequence[int], inode: int, roots: set[int]) -> bool:
    """Return whether this process has a socket open, or one of some programs that are not below."""
    return inode in _sockets(os.getpid()) or any(
        inode in _sockets(pid) and _root([pid], roots) == OUTSIDE for pid in programs
    )


def _root(holders: Sequence[int], roots: set[int]) -> int:
    found = [_root_of(pid, roots) for pid in holders]
    if not found or NOWHERE in found:
        return NOWHERE
    return max(found)  # a pid, if there is one


def _root_of(pid: int, roots: set[int]) -> int:
    while pid not in roots:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib is slow)
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return NOWHERE
        if pid == 0:
            return OUTSIDE
    return pid


def _look() -> _Look:
    found: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdecimal():
            for inode in _sockets(int(entry)):
                found.setdefault(inode, []).append(int(entry))
    return found


def _sockets(pid: int) -> Sequence[int]:
    """Return the sockets that a process has open; none of one that cannot be looked into."""
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

    ``roots`` returns the processes below which code runs as the double's own user, or as another
    one that is no session's; ``runtimes`` those below which all runtimes run.
    """

    def __init__(self, roots: Roots, runtimes: Roots = _none) -> None:
        self._roots = roots
        self._runtimes = runtimes
        self._holders = SocketOwners()

    async def caller(self, client: Address, server: Address) -> Caller:
        """Return whose code the caller is, or may be.

        A caller that has gone may have been a session's. If the machine does not tell, or the
        caller is on another machine, it is a program. This takes 0.05 ms; only if code runs as
        the double's own user, a thread looks through the processes.
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
    """Return whether this machine tells who owns a socket."""
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
    """Return the caller's socket; the kernel takes 5 ms to show a table, so this comes last."""
    near, far = address_of(client[0]), address_of(server[0])
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
    return plain(ipaddress.ip_address(struct.pack(f"!{len(words)}I", *words)))
