"""One way to serve an ASGI application: socket, event loop, start, stop.

Only this package opens a listening socket.
"""

from __future__ import annotations

from agentdouble.serving.loops import SteadyLoop, new_event_loop, run
from agentdouble.serving.protocols import (
    LARGEST_WEBSOCKET_MESSAGE,
    PEER,
    TRANSPORT,
    hang_up,
    is_closed,
)
from agentdouble.serving.sockets import address_of, open_socket, open_unix_socket
from agentdouble.serving.starting import ServerThread, serve

__all__ = [
    "LARGEST_WEBSOCKET_MESSAGE",
    "PEER",
    "TRANSPORT",
    "ServerThread",
    "SteadyLoop",
    "address_of",
    "hang_up",
    "is_closed",
    "new_event_loop",
    "open_socket",
    "open_unix_socket",
    "run",
    "serve",
]
