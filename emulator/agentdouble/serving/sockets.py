"""Listening sockets, and the addresses that reach them.

A socket made with ``proto=0`` gets no TCP_NODELAY from asyncio, which costs 44 ms a request. So
ours are made with IPPROTO_TCP.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentdouble import own_sockets
from agentdouble.errors import AddressInUseError

BACKLOG = 4096


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; raise AddressInUseError if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with own_sockets.permitted():
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


def open_grpc(
    host: str, port: int, largest_message: int, interceptors: Sequence[Any]
) -> tuple[Any, int]:
    """Return a listening grpc.aio server for the running loop, and its port.

    gRPC opens its sockets itself and does not accept ours. A message may have ``largest_message``
    bytes. Compression is off, because a few bytes could decompress to more than that. Raises
    AddressInUseError if the port is in use.
    """
    import grpc.aio

    asyncio.get_running_loop().set_exception_handler(_log_unless_grpc_s)
    options = [
        ("grpc.so_reuseport", 0),  # else a second server would take half of the calls
        ("grpc.max_receive_message_length", largest_message),
        ("grpc.compression_enabled_algorithms_bitset", 1),
    ]
    server = grpc.aio.server(interceptors=interceptors, options=options)
    name = f"[{host}]" if ":" in host else host
    try:
        return server, server.add_insecure_port(f"{name}:{port}")
    except RuntimeError:
        _say_why(host, port)
        raise


def _log_unless_grpc_s(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception, except two that have no meaning.

    All loops of a process that use grpc.aio share one queue there. Each loop gets the events of
    the others, and finds the queue empty or its owner, another loop, closed.
    """
    from_queue = "PollerCompletionQueue" in repr(context.get("handle"))
    if not (from_queue and isinstance(context.get("exception"), (BlockingIOError, RuntimeError))):
        loop.default_exception_handler(context)


def _say_why(host: str, port: int) -> None:
    """Raise AddressInUseError if the port is in use, because gRPC does not report it."""
    try:
        open_socket(host, port).close()
    except AddressInUseError:
        raise AddressInUseError(host, port, option="--a2a-grpc-port") from None


def address_of(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL that reaches a listening socket from this machine."""
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared)
    name = f"[{reachable}]" if ":" in reachable else reachable
    return f"{scheme}://{name}:{port}"
