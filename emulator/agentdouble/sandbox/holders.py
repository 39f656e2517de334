"""Below which processes a socket is open; Linux's /proc tells.

To look through all processes takes some 20 ms, so one look answers everybody who waits for one,
and programs that have called before are asked first.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

OUTSIDE = 0  # no pid of a process
NOWHERE = -1

_KNOWN = 4
_SOCKET = "socket:["

_Look = Mapping[int, Sequence[int]]  # by a socket's inode the processes that have it open


class Holders:
    """Looks for who has sockets open; belongs to one event loop."""

    def __init__(self) -> None:
        self._running: asyncio.Task[_Look] | None = None
        self._next: asyncio.Task[_Look] | None = None
        self._known: deque[int] = deque(maxlen=_KNOWN)  # programs that have called before

    async def root(self, inode: int, roots: set[int]) -> int:
        """Return the process of ``roots`` below which a socket is open.

        It is ``OUTSIDE`` where only others have it open, and ``NOWHERE`` where nobody has, or
        where that cannot be told, as a process ends just now.
        """
        if await asyncio.to_thread(_is_of, (*self._known,), inode, roots):
            return OUTSIDE
        holders = (await self._look()).get(inode, ())
        found = await asyncio.to_thread(_root, holders, roots)
        if found == OUTSIDE:
            self._known.appendleft(holders[0])
        return found

    async def _look(self) -> _Look:
        """Return what a look has found that began after this was called."""
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
