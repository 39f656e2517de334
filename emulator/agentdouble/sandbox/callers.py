"""Who is at the other end of a connection from this machine: a person's program, or code of
others that the double runs, in a session or as a runtime.

Linux says which user a socket belongs to, and which processes have it open. Sessions that are
users of their own are known by that; for others the socket is looked for: somewhere outside
all that the double runs it must be open.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble import socket_lookup
from agentdouble.addresses import address_of, is_loopback, plain
from agentdouble.processes import isolation
from agentdouble.sandbox.holders import OUTSIDE, Holders

if TYPE_CHECKING:
    from agentdouble.admission import Address, Caller

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
    """Tells callers that are code of a session or of a runtime; belongs to one event loop.

    ``roots`` returns the processes below which code runs as the double's own user, or as another
    one that is no session's; ``runtimes`` those below which all runtimes run.
    """

    def __init__(self, roots: Roots, runtimes: Roots = _none) -> None:
        self._roots = roots
        self._runtimes = runtimes
        self._holders = Holders()

    async def caller(self, client: Address, server: Address) -> Caller:
        """Return whose code the caller is, or may be.

        One that has gone may have been a session's. Where the machine does not tell, nobody is,
        and nobody of another machine. It takes 0.05 ms; only where code of the double's own user
        runs, a thread looks through the processes.
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
    """Return whether this machine tells whose a socket is."""
    return _TABLES[0].exists()


def _is_here(host: str) -> bool:
    """Return whether an address is one of this machine's: then it speaks to it from itself."""
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
