"""The connection of a request: its peer, whether it is closed, and how to close it."""

from __future__ import annotations

import asyncio
import os
import socket
import struct

from starlette.types import Receive, Scope

PEER = "agentdouble.peer"  # in the scope: the address at the other end, whatever a proxy says
TRANSPORT = "agentdouble.transport"  # in the scope: the connection, for code that must end it


def is_closed(scope: Scope) -> bool:
    """Return whether the connection of a request is closed, as far as this side knows."""
    transport: asyncio.Transport | None = scope.get(TRANSPORT)
    return transport is not None and transport.is_closing()


async def hang_up(scope: Scope, receive: Receive, *, reset: bool = False) -> None:
    """Close the connection of a request after the data was sent; return when it is closed.

    With ``reset`` the other end gets a connection reset. Data that the application sends after
    that is dropped. If there is no socket, because the application is called in this process, it
    raises ConnectionResetError.
    """
    transport: asyncio.Transport | None = scope.get(TRANSPORT)
    if transport is None:
        raise ConnectionResetError("The connection was closed, as a fault says.")
    await asyncio.sleep(0)  # send a head that waits for its body
    if reset:
        no_farewell = struct.pack("ii", 1, 0)
        # through a copy, because uvloop's socket does not have all methods
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as copy:
            copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_farewell)
    encrypted = transport.get_extra_info("ssl_object") is not None
    if reset or (encrypted and not transport.get_write_buffer_size()):
        transport.abort()  # over TLS a close would wait for the client's closing alert
    else:
        transport.close()
    while (await receive())["type"] != "http.disconnect":
        pass
