"""Connections to an instance: to its port of this machine, or to the port behind its door.

``processes.fork_server.doorway`` keeps the port of an instance in a network of its own. It gives
out sockets of that network at a door.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from agentdouble.runtimes.ports import HOST

_CREDENTIALS = struct.Struct("=iII")


@dataclass
class Door:
    """The path at which sockets to an instance are given out.

    ``keeper`` is the pid of the process that gives them out, once a connection has shown it.
    """

    path: Path
    keeper: int | None = None

    async def give(self) -> socket.socket:
        """Return a socket of the network behind the door; raise ConnectionRefusedError if none."""
        try:
            directory = os.open(self.path.parent, os.O_PATH | os.O_DIRECTORY)
        except FileNotFoundError as error:
            raise ConnectionRefusedError(str(error)) from None
        try:
            return await self._ask(f"/proc/self/fd/{directory}/{self.path.name}")
        except FileNotFoundError as error:
            raise ConnectionRefusedError(str(error)) from None
        finally:
            os.close(directory)

    async def _ask(self, path: str) -> socket.socket:
        """Request a socket through a descriptor, because a socket path has 108 bytes at most."""
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX) as asking:
            asking.setblocking(False)
            await loop.sock_connect(asking, path)
            self.keeper = self.keeper or _pid_of(asking)
            there: asyncio.Future[None] = loop.create_future()
            loop.add_reader(asking, _tell, there)
            try:
                await there
            finally:
                loop.remove_reader(asking)
            _, given, _, _ = socket.recv_fds(asking, 1, 1)
        if not given:
            raise ConnectionRefusedError("the instance is gone")
        return socket.socket(fileno=given[0])


async def connect(door: Door | None, port: int) -> socket.socket:
    """Return a socket that is connected to an instance; raise OSError."""
    if door is None:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    else:
        found = await door.give()
    try:
        found.setblocking(False)
        await asyncio.get_running_loop().sock_connect(found, (HOST, port))
    except BaseException:
        found.close()
        raise
    return found


def _pid_of(asking: socket.socket) -> int:
    found = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(found)[0]
    return pid


def _tell(there: asyncio.Future[None]) -> None:
    if not there.done():
        there.set_result(None)
