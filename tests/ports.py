"""Ports that a test reserves before a server listens on them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved() -> Iterator[int]:
    """Yield a loopback port that no other process gets, for a server to listen on.

    It is bound and nobody listens: whoever asks for a free port gets another one, and a server
    that sets SO_REUSEADDR may take it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":  # elsewhere it would keep out that server, too
            holder.close()
        yield port
