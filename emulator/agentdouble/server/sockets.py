"""Listening sockets, and the addresses that reach them.

A socket made with ``proto=0`` gets no TCP_NODELAY from asyncio, which costs 44 ms a request. So
ours are made with IPPROTO_TCP.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from pathlib import Path

from agentdouble.errors import AddressInUseError

BACKLOG = 4096


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; raise AddressInUseError if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)  # a port that is only bound can be bound once more
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(host, port) from None
        raise
    return listener


def open_unix_socket(path: Path) -> socket.socket:
    """Return a listening Unix socket at a path that only this user can write to."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def address_of(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL that reaches a listening socket from this machine."""
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared)
    name = f"[{reachable}]" if ":" in reachable else reachable
    return f"{scheme}://{name}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether a host, a name or an address, is a loopback name of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
