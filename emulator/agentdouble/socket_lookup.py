"""The owner of a TCP socket on this machine, which Linux looks up by its two addresses.

``sock_diag`` looks up one socket in 0.05 ms. Reading the tables in /proc, which have the same
data, takes 5 ms.
"""

from __future__ import annotations

import errno
import socket
import struct
from contextlib import suppress

from agentdouble.addresses import IPAddress

NOBODY = (0, 0)  # the user and inode of a socket that no process has open

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # NLM_F_REQUEST
_ALL_STATES = 0xFFFFFFFF
_ERROR = 2  # NLMSG_ERROR
_ERRNO = struct.Struct("=i")
_NO_COOKIE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")  # of a message of netlink: its length, type, ...
_ASKED = struct.Struct("=BBBxI")
_PORTS = struct.Struct("!HH")
_REST = struct.Struct("=III")
_FOUND = struct.Struct("=BBxx2s2s16s16s12x12xII")  # ... the user and the inode at its end


def look_up(near: tuple[IPAddress, int], far: tuple[IPAddress, int]) -> tuple[int, int] | None:
    """Return the user and the inode of the socket at ``near`` that is connected to ``far``.

    Return ``NOBODY`` if there is no such socket any more, and None if Linux does not answer or
    finds another one.
    """
    family = socket.AF_INET if near[0].version == 4 else socket.AF_INET6
    ports, addresses = _PORTS.pack(near[1], far[1]), _padded(near[0]) + _padded(far[0])
    with suppress(OSError, AttributeError), _netlink() as asking:  # only Linux has netlink
        asking.sendto(_message(family, ports + addresses), (0, 0))
        # the kernel has answered when sendto() returns
        return _read(asking.recv(4096, socket.MSG_DONTWAIT), ports, addresses)
    return None


def _netlink() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG)


def _padded(address: IPAddress) -> bytes:
    return address.packed.ljust(16, b"\0")


def _message(family: int, ends: bytes) -> bytes:
    body = _ASKED.pack(family, socket.IPPROTO_TCP, 0, _ALL_STATES) + ends
    body += _REST.pack(0, _NO_COOKIE, _NO_COOKIE)
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _read(answer: bytes, ports: bytes, addresses: bytes) -> tuple[int, int] | None:
    _length, kind, *_ = _HEADER.unpack_from(answer)
    if kind == _ERROR and -_ERRNO.unpack_from(answer, _HEADER.size)[0] == errno.ENOENT:
        return NOBODY
    if kind != _BY_FAMILY or len(answer) < _HEADER.size + _FOUND.size:
        return None
    _family, _state, near, far, source, destination, uid, inode = _FOUND.unpack_from(
        answer, _HEADER.size
    )
    if near + far != ports or source + destination != addresses:
        return None
    return uid, inode
