"""A breakable connection between a page and its double."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading


class Relay(socketserver.ThreadingTCPServer):
    """Forward connections until it is cut."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.target = ("127.0.0.1", port)
        self.is_cut = False
        self.events_flow = threading.Event()
        self.events_flow.set()
        self.open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut(self) -> None:
        """Break all connections and refuse new ones."""
        self.is_cut = True
        self.events_flow.set()
        for connection in tuple(self.open):
            _end(connection)

    def hold_events(self) -> None:
        """Hold back what event streams say from now on, until ``cut``; other answers pass."""
        self.events_flow.clear()

    def mend(self) -> None:
        self.is_cut = False

    def server_close(self) -> None:
        self.cut()
        self.shutdown()
        self._thread.join()
        super().server_close()


class _Passing(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        if self.server.is_cut:
            return
        with socket.create_connection(self.server.target) as behind:
            sockets = {self.request, behind}
            self.server.open |= sockets
            back = threading.Thread(target=self._pass, args=(behind, self.request))
            back.start()
            self._pass(self.request, behind)
            back.join()
            self.server.open -= sockets

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        is_stream = False
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                is_stream = is_stream or b"content-type: text/event-stream" in data.lower()
                if is_stream:
                    self.server.events_flow.wait()
                target.sendall(data)
        _end(source)
        _end(target)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
