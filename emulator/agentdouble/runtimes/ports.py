"""Ports for instances: of those from which no outgoing connection takes its own."""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"
_RANGE = range(20_000, 32_768)  # below what systems give to connections, and to port 0


def free_port() -> int:
    """Return a port of this machine that nobody listens on.

    An instance binds it some time later, and a port that a connection can be given might be one's
    by then.
    """
    for port in random.sample(_RANGE, 100):
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        found: int = probe.getsockname()[1]
        return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
