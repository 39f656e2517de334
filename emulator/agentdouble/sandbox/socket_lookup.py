"""Whose a TCP socket of this machine is, asked of Linux by its two addresses.

``sock_diag`` looks one socket up in 0.05 ms; the tables in /proc, which say the same, take 5 ms
to be shown.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from contextlib import suppress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # NLM_F_REQUEST
_ALL_STATES = 0xFFFFFFFF
_ESTABLISHED = 1
_NO_COOKIE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")  # of a message of netlink: its length, type, ...
_ASKED = struct.Struct("=BBBxI")
_PORTS = struct.Struct("!HH")
_REST = struct.Struct("=III")
_FOUND = struct.Struct("=BBxx2s2s16s16s12x12xII")  # ... the user and the inode at its end
_PATIENCE_S = 1.0


def look_up(near: tuple[IPAddress, int], far: tuple[IPAddress, int]) -> tuple[int, int] | None:
    """Return user and inode of the socket at ``near`` that is connected to ``far``.

    None, where there is no such socket or Linux does not answer.
    """
    family = socket.AF_INET if near[0].version == 4 else socket.AF_INET6
    ports, addresses = _PORTS.pack(near[1], far[1]), _padded(near[0]) + _padded(far[0])
    with suppress(OSError), _netlink() as asking:
        asking.sendto(_message(family, ports + addresses), (0, 0))
        return _read(asking.recv(4096), ports, addresses)
    return None


def _netlink() -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG)
    opened.settimeout(_PATIENCE_S)
    return opened


def _padded(address: IPAddress) -> bytes:
    return address.packed.ljust(16, b"\0")


def _message(family: int, ends: bytes) -> bytes:
    body = _ASKED.pack(family, socket.IPPROTO_TCP, 0, _ALL_STATES) + ends
    body += _REST.pack(0, _NO_COOKIE, _NO_COOKIE)
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _read(answer: bytes, ports: bytes, addresses: bytes) -> tuple[int, int] | None:
    _length, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _BY_FAMILY or len(answer) < _HEADER.size + _FOUND.size:
        return None
    _family, state, near, far, source, destination, uid, inode = _FOUND.unpack_from(
        answer, _HEADER.size
    )
    if state != _ESTABLISHED or near + far != ports or source + destination != addresses:
        return None
    return uid, inode
