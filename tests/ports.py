"""Ports that a test reserves before a server listens on them, and servers on free ports."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from starlette.types import ASGIApp

from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread


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


@contextmanager
def served(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Serve an application on a loopback port and yield its URL."""
    listener = open_socket("127.0.0.1", port)
    thread = ServerThread(app, listener)
    thread.start()
    try:
        yield address_of(listener)
    finally:
        thread.stop()


@contextmanager
def handled(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Answer requests on a loopback port by a handler, without its log; yield the URL."""

    class Quiet(handler):  # type: ignore[misc, valid-type]
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
