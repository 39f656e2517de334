"""Servers that are not a platform."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

Behaviour = Callable[[socket.socket], object]


class Server:
    """A server's URL and its accepted connections."""

    def __init__(self, listener: socket.socket) -> None:
        host, port = listener.getsockname()
        self.url = f"http://{host}:{port}"
        self.accepted: list[socket.socket] = []


@contextmanager
def serving(behave: Behaviour) -> Iterator[Server]:
    """Serve on this machine, pass each connection to ``behave`` and close it at the end.

    Our own connection stops the server, so earlier ones have been accepted by then.
    """
    with closing(socket.create_server(("127.0.0.1", 0))) as listener, socket.socket() as last:
        last.bind(("127.0.0.1", 0))
        server = Server(listener)
        accepting = (listener, last.getsockname(), server, behave)
        thread = threading.Thread(target=_accept, args=accepting)
        thread.start()
        try:
            yield server
        finally:
            last.connect(listener.getsockname())
            thread.join()
            for connection in server.accepted:
                connection.close()


def _accept(
    listener: socket.socket, last: tuple[str, int], server: Server, behave: Behaviour
) -> None:
    while True:
        connection, address = listener.accept()
        server.accepted.append(connection)
        if address == last:
            server.accepted.pop().close()
            return
        with suppress(OSError):
            behave(connection)


def hang(connection: socket.socket) -> None:
    """Accept and never answer."""


def reset(connection: socket.socket) -> None:
    """Read the request and reset the connection."""
    connection.recv(65536)
    break_off(connection)


def break_off(connection: socket.socket) -> None:
    """End a connection without an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def drip(connection: socket.socket) -> None:
    """Begin an answer that never ends."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")


def drip_body(connection: socket.socket) -> None:
    """Begin a body that never ends."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[")


def answer(
    body: bytes, content_type: str = "application/json", status: str = "200 OK", more: str = ""
) -> Behaviour:
    """Send the same answer to every request."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return raw(f"{head}{more}Connection: close\r\n\r\n".encode() + body)


def raw(content: bytes) -> Behaviour:
    """Answer with these bytes."""

    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)

    return behave


def keep_alive(connection: socket.socket) -> None:
    """Begin a stream, and send comments until the client goes away."""
    connection.recv(65536)
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    connection.sendall(f"{head}data: {{}}\n\n".encode())

    def comment() -> None:
        with suppress(OSError):
            while not threading.Event().wait(0.01):
                connection.sendall(b": ping\n\n")

    threading.Thread(target=comment, daemon=True).start()
